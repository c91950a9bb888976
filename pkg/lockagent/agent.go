package lockagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// ErrNotHolding is what Release fails with when there is nothing to release.
var ErrNotHolding = errors.New("not holding the lock")

// Options are what tests and programs may set. The zero value works.
type Options struct {
	// Clock is what the agent reads deadlines from. The machine's by default.
	Clock Clock
	// Log is where the agent tells what happens. Default slog.Default().
	Log *slog.Logger
	// Version is the program's, for the log. Empty by default.
	Version string
	// Files are what the app can read. By default those of Config.Dir.
	Files *Files
	// Busy tells whether processes may be late, so that the time of one says
	// little. By default it asks the machine.
	Busy func() bool
	// Exit ends the process at once: the watchdog's last resort when the loop no
	// longer decides anything. Default os.Exit. It should not return; if it does,
	// the watchdog has done its work and ends.
	Exit func(code int)
}

func (o *Options) setDefaults(cfg agentenv.Config) {
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Files == nil {
		o.Files = NewFiles(cfg.Dir)
	}
	if o.Busy == nil {
		o.Busy = machineBusy
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
}

// Agent takes one hold of one lock and keeps it. See the package comment.
type Agent struct {
	cfg      agentenv.Config
	store    Store
	clock    Clock
	log      *slog.Logger
	version  string
	files    *Files
	nodeBusy func() bool
	exit     func(code int)
	status   *Status
	metrics  *Metrics
	pulse    pulse

	releases chan releaseRequest // from Release to the loop
	attempts chan attemptRequest // from Attempt to the loop
	done     chan struct{}       // closed when Run has returned

	random   func() float64 // in [0, 1): all jitter comes from here
	newOwner func() string
}

// New makes an agent that does nothing until Run.
func New(cfg agentenv.Config, store Store, opts Options) *Agent {
	opts.setDefaults(cfg)
	status := NewStatus(cfg, opts.Clock)
	return &Agent{
		cfg: cfg, store: store,
		clock: opts.Clock, log: opts.Log, version: opts.Version, files: opts.Files, nodeBusy: opts.Busy, exit: opts.Exit,
		status: status, metrics: NewMetrics(status),
		releases: make(chan releaseRequest), attempts: make(chan attemptRequest), done: make(chan struct{}),
		random: rand.Float64, newOwner: uuid.NewString,
	}
}

// Run takes the lock and keeps it until ctx ends, which stands for SIGTERM, or
// until the agent must end for another reason. It returns the exit code within
// two seconds of ctx's end, whatever the store does. Run once only.
func (a *Agent) Run(ctx context.Context) int {
	defer close(a.done)
	running, stop := context.WithCancel(context.Background())
	defer stop()
	l := newLoop(a, running)
	go a.watch(running)
	return l.run(ctx)
}

// Status is what API, files and probes read. It is there before Run.
func (a *Agent) Status() *Status { return a.status }

// Metrics counts what the loop does. It is there before Run.
func (a *Agent) Metrics() *Metrics { return a.metrics }

// Release gives the lock back before the app ends, and returns once the store
// has confirmed it. It is final: the agent does not queue again. From the call
// on the lock counts as not held, for the store may have done it although its
// answer is lost. It may return ErrNotHolding. When ctx ends first, or the store
// does not answer, the agent goes on trying until the hold would have ended.
func (a *Agent) Release(ctx context.Context) error {
	request := releaseRequest{reply: make(chan error, 1)}
	select {
	case a.releases <- request:
	case <-a.done:
		return ErrNotHolding
	case <-ctx.Done():
		return fmt.Errorf("release %q: %w", a.cfg.Resource, ctx.Err())
	}
	select {
	case err := <-request.reply:
		return err
	case <-a.done:
		return fmt.Errorf("release %q: the agent has ended", a.cfg.Resource)
	case <-ctx.Done():
		return fmt.Errorf("release %q: not confirmed yet: %w", a.cfg.Resource, ctx.Err())
	}
}
