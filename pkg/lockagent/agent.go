package lockagent

import (
	"context"
	"errors"
	"log/slog"
	"os"

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
	// Files are what the app can read. By default those of Config.Dir.
	Files *Files
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
	if o.Exit == nil {
		o.Exit = os.Exit
	}
}

// Agent takes one hold of one lock and keeps it. See the package comment.
type Agent struct {
	cfg     agentenv.Config
	store   Store
	opts    Options
	status  *Status
	metrics *Metrics
}

// New makes an agent that does nothing until Run.
func New(cfg agentenv.Config, store Store, opts Options) *Agent {
	opts.setDefaults(cfg)
	status := NewStatus(cfg, opts.Clock)
	return &Agent{cfg: cfg, store: store, opts: opts, status: status, metrics: NewMetrics(status)}
}

// Run takes the lock and keeps it until ctx ends, which stands for SIGTERM, or
// until the agent must end for another reason. It returns the exit code within
// two seconds of ctx's end, whatever the store does. Run once only.
func (a *Agent) Run(ctx context.Context) int {
	<-ctx.Done()
	return ExitOK
}

// Status is what API, files and probes read. It is there before Run.
func (a *Agent) Status() *Status { return a.status }

// Metrics counts what the loop does. It is there before Run.
func (a *Agent) Metrics() *Metrics { return a.metrics }

// Release gives the lock back before the app ends, and returns once the store
// has confirmed it. It is final: the agent does not queue again. It may return
// ErrNotHolding, or the store's error, after which the lock is still kept.
func (a *Agent) Release(context.Context) error { return ErrNotHolding }

// Live says why the agent must be restarted; nil if it need not be. The kubelet
// asks it as liveness probe, and the agent notes that it was asked: see term.go.
func (a *Agent) Live() error { return nil }
