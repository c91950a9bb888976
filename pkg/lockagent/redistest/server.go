// Package redistest starts real Redis servers for a test, alone, under Sentinels
// or as a cluster: each with its own folder, socket and port, nothing on disk, gone
// when the test ends.
package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RequireVar is the environment variable that, set to 1, makes a test fail
// instead of being skipped where the real thing is not installed.
const RequireVar = "HOLDFAST_REQUIRE_REAL"

// ProgramVar is the environment variable that names the program to run instead of
// redis-server from PATH, such as a valkey-server.
const ProgramVar = "HOLDFAST_REDIS_SERVER"

// startWithin bounds how long a server may take to answer its first PING. On a
// busy machine that is seconds, not milliseconds.
const startWithin = 20 * time.Second

// Server is one running redis-server.
type Server struct {
	Addr   string // 127.0.0.1:PORT
	Socket string // path of its unix socket; none of a Sentinel

	ping func() error // nil once it answers
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{} // closed when the process has ended
}

// Start runs redis-server from PATH, or from [ProgramVar], until the test ends.
// Each argument of config is one line of redis.conf, such as "maxmemory 2mb", and
// wins over the defaults. In it PORT is the server's port, and DIR its folder.
// Without a redis-server the test is skipped; see [RequireVar].
func Start(tb testing.TB, config ...string) *Server {
	tb.Helper()
	return run(tb, nil, append([]string{
		"bind 127.0.0.1", "port PORT", "unixsocket DIR/redis.sock",
		`save ""`, "appendonly no", "maxmemory-policy noeviction",
	}, config...))
}

// run starts the program with a configuration.
func run(tb testing.TB, args, config []string) *Server {
	tb.Helper()
	name := os.Getenv(ProgramVar)
	if name == "" {
		name = "redis-server"
	}
	program, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv(RequireVar) == "1" {
			tb.Fatalf("%s=1, but there is no %s: install the package redis-server", RequireVar, name)
		}
		tb.Skipf("no %s in PATH; %s=1 makes this a failure", name, RequireVar)
	}
	// The port is chosen, then bound by another process: someone may be faster.
	for attempt := 1; ; attempt++ {
		s, err := start(tb, program, args, config)
		if err == nil {
			return s
		}
		if attempt == 3 {
			tb.Fatalf("start %s: %v", name, err)
		}
	}
}

func start(tb testing.TB, program string, args, config []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	// Not tb.TempDir: its path can be longer than the 107 bytes of a socket's.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })

	s := &Server{
		Addr:   net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Socket: filepath.Join(dir, "redis.sock"),
		log:    new(bytes.Buffer),
		done:   make(chan struct{}),
	}
	network, addr := "unix", s.Socket
	if len(args) > 0 { // a Sentinel
		network, addr, s.Socket = "tcp", s.Addr, ""
	}
	s.ping = func() error { return ping(network, addr) }
	text := strings.Join(append([]string{"daemonize no", "dir DIR"}, config...), "\n") + "\n"
	text = strings.NewReplacer("PORT", strconv.Itoa(port), "DIR", dir).Replace(text)
	conf := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(program, append([]string{conf}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// A test binary that is killed runs no cleanup.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	tb.Cleanup(s.Kill)
	return s, s.awaitPong()
}

// URL is the server's address for the TCP port.
func (s *Server) URL() string { return "redis://" + s.Addr }

// SocketURL is the server's address for the unix socket.
func (s *Server) SocketURL() string { return "unix://" + s.Socket }

// Kill ends the server as a crash would, and waits for its end.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Freeze stops the server where it is: connections stay open, nothing answers.
func (s *Server) Freeze() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (s *Server) Thaw() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// awaitPong returns once the server answers, even if only to say that it wants
// a password.
func (s *Server) awaitPong() error {
	deadline := time.After(startWithin)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return fmt.Errorf("it ended: %s", s.log)
		case <-deadline:
			return errors.New("it did not answer in time")
		case <-tick.C:
			if s.ping() == nil {
				return nil
			}
		}
	}
}

func ping(network, addr string) error {
	conn, err := net.DialTimeout(network, addr, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil {
		return err
	}
	return nil
}

// freePort is below that to which a cluster's node adds 10000.
func freePort() (int, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 55_000 {
			return port, nil
		}
	}
}
