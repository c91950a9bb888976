package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// within bounds what should take milliseconds, on a machine that may be busy.
const within = 30 * time.Second

var binary string

// TestMain builds the program once.
func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "holdfast-agent")
	out, err := exec.Command("go", "build", "-ldflags", "-X main.version=v1.2.3-test", "-o", binary, ".").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the agent: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is one run of the program.
type process struct {
	t      *testing.T
	dir    string // HOLDFAST_DIR
	cmd    *exec.Cmd
	output *lines
	client http.Client
	ended  chan struct{}
}

// lines is what a process has written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// variables are those of an agent that shares nothing but Redis with others.
func variables(t *testing.T, redis string) map[string]string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return map[string]string{
		"HOLDFAST_KIND": "mutex", "HOLDFAST_RESOURCE": "orders/etl",
		"HOLDFAST_REDIS_URL": redis, "HOLDFAST_REDIS_GUARD": "off",
		"HOLDFAST_DIR": filepath.Join(dir, "run"), "HOLDFAST_STATE_DIR": filepath.Join(dir, "state"),
		"HOLDFAST_LISTEN": "", "HOLDFAST_PROBE_LISTEN": "",
	}
}

// and returns vars with more: name, value, name, value.
func and(vars map[string]string, more ...string) map[string]string {
	out := maps.Clone(vars)
	for i := 0; i < len(more); i += 2 {
		out["HOLDFAST_"+more[i]] = more[i+1]
	}
	return out
}

// launch starts the program with nothing but vars in its environment.
func launch(t *testing.T, vars map[string]string, args ...string) *process {
	t.Helper()
	output := &lines{}
	p := launchTo(t, vars, output, args...)
	p.output = output
	return p
}

// launchTo has the program write to output.
func launchTo(t *testing.T, vars map[string]string, output io.Writer, args ...string) *process {
	t.Helper()
	p := &process{t: t, dir: vars["HOLDFAST_DIR"], output: &lines{}, ended: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = []string{}
	for name, value := range vars {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.client.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.dir, agentenv.SocketName))
		},
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("output of %v:\n%s", p.cmd.Args[1:], p.output)
		}
	})
	return p
}

// start launches run, and returns once the API answers.
func start(t *testing.T, vars map[string]string) *process {
	t.Helper()
	p := launch(t, vars)
	p.awaitAPI()
	return p
}

func (p *process) awaitAPI() {
	p.t.Helper()
	p.await("the API answers", func() bool {
		resp, err := p.client.Get("http://localhost/v1/state")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return true
	})
}

// await looks until something is true, which it must become.
func (p *process) await(what string, is func() bool) {
	p.t.Helper()
	await(p.t, what, is)
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in %s: %s", within, what)
		}
	}
}

// signal sends one to this process only.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code, -1 for a signal's.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		p.t.Fatalf("not ended in %s", within)
		return 0
	}
}

// answer is one of the API.
type answer struct {
	code int
	body string
	lockagent.State
}

// ask sends a request; the state is parsed where there is one.
func (p *process) ask(method, path string) answer {
	p.t.Helper()
	req, err := http.NewRequest(method, "http://localhost"+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	a := answer{code: resp.StatusCode, body: string(body)}
	if resp.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(body, &a.State); err != nil {
			p.t.Fatal(err)
		}
	}
	return a
}

// awaitHeld returns the state once the lock is held.
func (p *process) awaitHeld() lockagent.State {
	p.t.Helper()
	a := p.ask("GET", "/v1/held?wait=30s")
	if a.code != 200 {
		p.t.Fatalf("not held after 30s: %s", a.body)
	}
	return a.State
}

// awaitError returns the state once it shows an error of this code.
func (p *process) awaitError(code lockagent.Code) lockagent.State {
	p.t.Helper()
	var st lockagent.State
	p.await("an error "+string(code), func() bool {
		st = p.ask("GET", "/v1/state").State
		return st.Error != nil && st.Error.Code == code
	})
	return st
}

// file reads one that the app can read; empty if it is not there.
func (p *process) file(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(b)
}

// records are the log's lines.
func (p *process) records() []map[string]any {
	p.t.Helper()
	var out []map[string]any
	for line := range strings.Lines(p.output.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("log line %q is not JSON: %v", line, err)
		}
		out = append(out, r)
	}
	return out
}

// redisDo sends one command, and returns the first line of the reply.
func redisDo(t *testing.T, s *redistest.Server, command string) string {
	t.Helper()
	conn, err := net.Dial("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<10)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b[:n]))
}
