package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is a real Redis of the benchmark's own: on loopback, without
// persistence, gone when the benchmark ends.
type redisServer struct {
	addr   string
	admin  *redis.Client
	cmd    *exec.Cmd
	folder string
}

// startRedis starts redis-server from PATH and returns once it answers.
func startRedis(ctx context.Context) (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("the benchmarks need a real redis-server in PATH: install it (Debian: apt-get install redis-server): %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "holdfast-bench-redis-")
	if err != nil {
		return nil, err
	}
	s := &redisServer{addr: net.JoinHostPort("127.0.0.1", port), folder: folder}
	s.cmd = exec.Command(path,
		"--bind", "127.0.0.1", "--port", port, "--dir", folder,
		"--save", "", "--appendonly", "no", "--maxclients", "8000", "--loglevel", "warning")
	// A benchmark that is killed must not leave a server behind.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr})
	if err := s.ready(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *redisServer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		err := s.admin.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server on %s does not answer: %w", s.addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *redisServer) stop() {
	_ = s.admin.Close()
	_ = s.cmd.Process.Kill() // it keeps nothing
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.folder)
}

func (s *redisServer) url() string { return "redis://" + s.addr }

// commands is how many commands the server has executed since its start,
// counting those inside scripts one by one.
func (s *redisServer) commands(ctx context.Context) (float64, error) {
	fields, err := s.info(ctx, "stats")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(fields["total_commands_processed"], 64)
}

// version is the server's own.
func (s *redisServer) version(ctx context.Context) string {
	fields, _ := s.info(ctx, "server")
	return fields["redis_version"]
}

func (s *redisServer) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("info %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// freePort asks the kernel for one. Another program may take it before the
// server does; the start then fails, which says so.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
