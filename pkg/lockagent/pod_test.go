package lockagent_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
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

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

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

	over   lockagent.Store // instead of store
	random float64
	busy   bool // is the machine

	agent *lockagent.Agent
	term  context.CancelFunc
	code  chan int      // what Run has returned
	ended chan struct{} // closed then
	exits chan int      // by the watchdog
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
		server: server, store: memstore.NewStore(server, cfg.Kind, cfg.Resource), log: &logbook{}, random: 0.5,
	}
}

func outside(c *agentenv.Config) { c.Pod = agentenv.Pod{} }

func notify(c *agentenv.Config) { c.OnLost, c.Margin = agentenv.LostNotify, c.TTL/5 }

func ttl(ttl, margin time.Duration) func(*agentenv.Config) {
	return func(c *agentenv.Config) { c.TTL, c.Margin = ttl, margin }
}

func permits(n int) func(*agentenv.Config) {
	return func(c *agentenv.Config) { c.Kind, c.Permits = agentenv.Semaphore, n }
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
	store := p.over
	if store == nil {
		store = p.store
	}
	p.agent = lockagent.New(p.cfg, store, lockagent.Options{
		Clock: p.machine, Log: slog.New(p.log), Exit: func(code int) { exits <- code },
		Busy: func() bool { return p.busy },
	})
	p.agent.SetRandom(func() float64 { return p.random })
	ended := make(chan struct{})
	p.ended = ended
	go func(a *lockagent.Agent) {
		defer close(ended)
		code <- a.Run(ctx)
	}(p.agent)
	p.t.Cleanup(func() {
		p.store.Intercept(nil)
		term()
		<-ended
	})
	synctest.Wait()
	return p
}

// killed is the state folder as a process leaves it that ends without a word
// now. The process itself, which a test cannot kill, is sent away from the
// store and the folders, and ended.
func (p *pod) killed() *pod {
	p.t.Helper()
	synctest.Wait() // a file that is being written would be copied in part
	next := &pod{
		t: p.t, cfg: p.cfg, machine: p.machine,
		server: p.server, store: memstore.NewStore(p.server, p.cfg.Kind, p.cfg.Resource), log: &logbook{}, random: p.random,
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

func (p *pod) read(dir, name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// wantExit waits until the agent has ended, but not longer than within.
func (p *pod) wantExit(want int, within time.Duration) {
	p.t.Helper()
	select {
	case got := <-p.code:
		p.code <- got
	case <-time.After(within):
		synctest.Wait()
	}
	select {
	case got := <-p.code:
		if got != want {
			p.t.Errorf("exit code = %d, want %d\n%s", got, want, p.log)
		}
		if p.heldFile() {
			p.t.Errorf("the file held is there after the end")
		}
	default:
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

// sent are the times of the requests of one kind.
func (p *pod) sent(op string) []time.Time {
	var times []time.Time
	for _, c := range p.store.Calls() {
		if c.Op == op {
			times = append(times, c.At)
		}
	}
	return times
}

// calls counts the requests of one kind.
func (p *pod) calls(op string) int { return len(p.sent(op)) }

func (p *pod) wantMetric(name string, want float64) {
	p.t.Helper()
	var b strings.Builder
	p.agent.Metrics().WritePrometheus(&b)
	for line := range strings.Lines(b.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if got, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || got != want {
				p.t.Errorf("%s = %s, want %v", name, strings.TrimSpace(value), want)
			}
			return
		}
	}
	p.t.Errorf("no metric %s in\n%s", name, b.String())
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
