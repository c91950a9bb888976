package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// buildAgent builds holdfast-agent into folder.
func buildAgent(ctx context.Context, folder string) (string, error) {
	program := filepath.Join(folder, "holdfast-agent")
	return program, build(ctx, "..", "./cmd/sidecar", program)
}

// build builds a program of the module in folder as the Makefile builds the
// agent.
func build(ctx context.Context, folder, source, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "nethttpomithttp2", "-trimpath", "-ldflags", "-s -w", "-o", program, source)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s (the benchmarks run in their own folder, bench/): %w\n%s", source, err, out)
	}
	return nil
}

// agent is one running holdfast-agent, without a pod around it.
type agent struct {
	cfg    agentenv.Config
	cmd    *exec.Cmd
	log    *os.File
	client *http.Client // to the socket in cfg.Dir

	environment []string // besides that of cfg
}

// startAgent runs program for a mutex with this TTL, in folders of its own
// below folder. change may alter the rest of how it is run; it may be nil.
func startAgent(program, folder, redisURL, resource string, ttl time.Duration, change func(*agent)) (*agent, error) {
	cfg := agentenv.Default()
	cfg.Kind, cfg.Permits, cfg.Resource = agentenv.Mutex, 1, resource
	cfg.TTL, cfg.Margin = ttl, ttl/5
	cfg.Gate, cfg.OnLost = agentenv.GateNone, agentenv.LostNotify
	cfg.Redis.URL, cfg.Redis.Guard = redisURL, 0
	cfg.Listen, cfg.ProbeListen = "127.0.0.1:0", ""
	own, err := os.MkdirTemp(folder, "agent-")
	if err != nil {
		return nil, err
	}
	cfg.Dir, cfg.StateDir = filepath.Join(own, "run"), filepath.Join(own, "state")
	a := &agent{cfg: cfg}
	if change != nil {
		change(a)
	}
	if a.log, err = os.Create(filepath.Join(own, "log")); err != nil {
		return nil, err
	}
	for _, dir := range []string{cfg.Dir, cfg.StateDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	// What the first init container does.
	if err := a.command(program, "init").Run(); err != nil {
		return nil, fmt.Errorf("holdfast-agent init: %w%s", err, a.logged())
	}
	a.cmd = a.command(program, "run")
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("holdfast-agent run: %w", err)
	}
	socket := filepath.Join(cfg.Dir, "agent.sock")
	a.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	return a, nil
}

// command is the agent's program with what the webhook gives it: GOMAXPROCS and
// the agent's variables.
func (a *agent) command(program, name string) *exec.Cmd {
	cmd := exec.Command(program, name)
	cmd.Env = append([]string{"GOMAXPROCS=1"}, a.environment...) // of two, the later counts
	for _, v := range a.cfg.Env() {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Stdout, cmd.Stderr = a.log, a.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// logged is what the agent said, for errors.
func (a *agent) logged() string {
	text, _ := os.ReadFile(a.log.Name())
	return "\n" + string(text)
}

// stop ends the agent as a kubelet would, but does not wait as long.
func (a *agent) stop() {
	a.client.CloseIdleConnections()
	ended := make(chan struct{})
	go func() {
		_ = a.cmd.Wait()
		close(ended)
	}()
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = a.cmd.Process.Kill()
		<-ended
	}
	_ = a.log.Close()
}

// get reads a state from the agent's API.
func (a *agent) get(ctx context.Context, path string) (lockagent.State, error) {
	var st lockagent.State
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return st, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return st, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return st, err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return st, fmt.Errorf("GET %s: %s: %s", path, resp.Status, body)
	}
	if err := json.Unmarshal(body, &st); err != nil {
		return st, fmt.Errorf("GET %s: %w: %s", path, err, body)
	}
	return st, nil
}

// await returns the first state that is held, or that is not.
func (a *agent) await(ctx context.Context, held bool) (lockagent.State, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	path := "/v1/held?wait=60s"
	for {
		st, err := a.get(ctx, path)
		if err == nil && st.Held == held {
			return st, nil
		}
		if err == nil && !held {
			path = fmt.Sprintf("/v1/state?since=%s&wait=60s", st.State)
			continue
		}
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
			err = nil // it has only just been started
		}
		if err != nil || ctx.Err() != nil {
			return st, fmt.Errorf("agent of %s, waiting for held=%t: %w%s", a.cfg.Resource, held, errors.Join(err, ctx.Err()), a.logged())
		}
		time.Sleep(5 * time.Millisecond)
	}
}
