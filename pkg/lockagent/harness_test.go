package lockagent_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is the clock of a test: the bubble's time since boot, and what the
// machine has slept, which Go's timers do not see.
type machine struct {
	mu     sync.Mutex
	booted time.Time
	slept  time.Duration
	bootID string
}

func newMachine() *machine {
	return &machine{booted: time.Now().Add(-time.Hour), bootID: "boot-1"}
}

func (m *machine) Boot() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.booted) + m.slept
}

func (m *machine) BootID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bootID
}

func (m *machine) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.slept)
}

func (m *machine) suspend(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slept += d
}

// pod is one pod (or, without a UID, one plain process) and the agents that run
// in it one after another.
type pod struct {
	t       *testing.T
	machine *machine
	server  *memstore.Server
	store   *memstore.Store
	cfg     agentenv.Config

	agent *lockagent.Agent
	term  context.CancelFunc
	code  chan int
	exits chan int // by the watchdog
	log   *logbook
}

// newPod has a mutex with the default TTL of 30 s and a margin of 6.5 s, on-lost
// stop. Changes come last.
func newPod(t *testing.T, server *memstore.Server, change ...func(*agentenv.Config)) *pod {
	cfg := agentenv.Default()
	cfg.Kind, cfg.Resource, cfg.Permits = agentenv.Mutex, "orders/etl", 1
	cfg.Margin, cfg.OnLost = 6500*time.Millisecond, agentenv.LostStop
	cfg.Dir, cfg.StateDir = t.TempDir(), t.TempDir()
	cfg.Pod = agentenv.Pod{Name: "etl-0", Namespace: "orders", UID: "uid-1", Node: "node-1"}
	for _, f := range change {
		f(&cfg)
	}
	return &pod{
		t: t, cfg: cfg, machine: newMachine(),
		server: server, store: memstore.NewStore(server), log: &logbook{},
	}
}

func outside(c *agentenv.Config) { c.Pod = agentenv.Pod{} }
func notify(c *agentenv.Config)  { c.OnLost, c.Margin = agentenv.LostNotify, c.TTL/5 }

func ttl(ttl, margin time.Duration) func(*agentenv.Config) {
	return func(c *agentenv.Config) { c.TTL, c.Margin = ttl, margin }
}

// init is the kubelet starting all of the pod's containers: it raises the epoch.
func (p *pod) init() *pod {
	p.t.Helper()
	if _, err := lockagent.RaiseEpoch(p.cfg.StateDir); err != nil {
		p.t.Fatal(err)
	}
	return p
}

// start starts an agent, which runs until the test ends at the latest.
func (p *pod) start() *pod {
	p.t.Helper()
	ctx, term := context.WithCancel(context.Background())
	p.term, p.code, p.exits = term, make(chan int, 1), make(chan int, 1)
	exits, code := p.exits, p.code
	p.agent = lockagent.New(p.cfg, p.store, lockagent.Options{
		Clock: p.machine, Log: slog.New(p.log), Exit: func(code int) { exits <- code },
	})
	p.agent.SetRandom(func() float64 { return 0.5 })
	go func(a *lockagent.Agent) { code <- a.Run(ctx) }(p.agent)
	p.t.Cleanup(term)
	synctest.Wait()
	return p
}

// killed is the state folder as a process leaves it that ends without a word
// now. The process itself, which a test cannot kill, is sent away from the
// store and the folders, and ended.
func (p *pod) killed() *pod {
	p.t.Helper()
	next := &pod{
		t: p.t, cfg: p.cfg, machine: p.machine,
		server: p.server, store: memstore.NewStore(p.server), log: &logbook{},
	}
	next.cfg.Dir, next.cfg.StateDir = p.t.TempDir(), p.t.TempDir()
	copyFiles(p.t, p.cfg.Dir, next.cfg.Dir)
	copyFiles(p.t, p.cfg.StateDir, next.cfg.StateDir)
	p.store.Intercept(memstore.Refuse)
	p.term()
	synctest.Wait()
	return next
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func (p *pod) state() lockagent.State { return p.agent.Status().State() }

func (p *pod) wantPhase(want lockagent.Phase) {
	p.t.Helper()
	if got := p.state(); got.State != want {
		p.t.Fatalf("state = %s, want %s; problem %+v\n%s", got.State, want, got.Error, p.log)
	}
}

func (p *pod) wantHeld(want bool) {
	p.t.Helper()
	if got := p.state().Held; got != want {
		p.t.Errorf("held = %t, want %t", got, want)
	}
	if got := p.heldFile(); got != want {
		p.t.Errorf("file held exists = %t, want %t", got, want)
	}
}

func (p *pod) heldFile() bool {
	_, err := os.Stat(filepath.Join(p.cfg.Dir, "held"))
	return err == nil
}

// wantExit waits until the agent has ended, but not longer than within.
func (p *pod) wantExit(want int, within time.Duration) {
	p.t.Helper()
	select {
	case got := <-p.code:
		if got != want {
			p.t.Errorf("exit code = %d, want %d\n%s", got, want, p.log)
		}
		if p.heldFile() {
			p.t.Errorf("the file held is there after the end")
		}
	case <-time.After(max(within, time.Millisecond)):
		p.t.Fatalf("the agent still runs after %s, in state %s\n%s", within, p.state().State, p.log)
	}
}

func (p *pod) wantRunning() {
	p.t.Helper()
	select {
	case got := <-p.code:
		p.t.Fatalf("the agent has ended with %d\n%s", got, p.log)
	default:
	}
}

// calls counts the requests of one kind.
func (p *pod) calls(op string) int {
	n := 0
	for _, c := range p.store.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

// prestop is the kubelet running the hook.
func (p *pod) prestop() {
	p.t.Helper()
	if err := lockagent.MarkTerminating(p.cfg.StateDir, p.machine); err != nil {
		p.t.Fatal(err)
	}
}

// sleep lets time go by, to the last timer that is due then.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// logbook keeps what is logged, and can hold up whoever logs.
type logbook struct {
	mu     sync.Mutex
	lines  []string
	holdUp string        // a message: who logs it stands still
	until  chan struct{} // until this is closed
}

func (b *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (b *logbook) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *logbook) WithGroup(string) slog.Handler            { return b }

func (b *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	b.mu.Lock()
	b.lines = append(b.lines, line)
	wait := b.holdUp != "" && strings.Contains(r.Message, b.holdUp)
	b.mu.Unlock()
	if wait {
		<-b.until
	}
	return nil
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

// freezeAt makes whoever logs message stand still until the test ends.
func (b *logbook) freezeAt(t *testing.T, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holdUp, b.until = message, make(chan struct{})
	t.Cleanup(func() { close(b.until) })
}
