package revisions

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// LeaseName is the Lease by which one replica is the leader.
const LeaseName = "holdfast-revisions"

// Options of [Run]. All fields but LeaseNamespace are required.
type Options struct {
	Config    *rest.Config
	Publisher Publisher
	Metrics   *Metrics
	Log       *slog.Logger

	// LeaseNamespace is where the Lease is; the program's own namespace in a
	// cluster, without default outside of one.
	LeaseNamespace string
}

// pauseAfterFailure is between an end that nobody asked for and the next start.
const pauseAfterFailure = 5 * time.Second

// Run publishes the revisions of all ReplicaSets that have pods with an agent,
// whenever this replica is the leader, until ctx ends. What makes it fail, such
// as an API server that is away for so long that another replica leads, is
// logged, and it starts anew: nothing else of the program depends on it.
func Run(ctx context.Context, o Options) {
	for {
		err := o.runOnce(ctx)
		if ctx.Err() == nil {
			o.Log.Error("publishing of revisions has ended and starts again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait.Jitter(pauseAfterFailure, 1)):
		}
	}
}

func (o Options) runOnce(ctx context.Context) error {
	m, err := manager.New(o.Config, manager.Options{
		Logger:                        logr.FromSlogHandler(o.Log.Handler()),
		Cache:                         cacheOptions(),
		Metrics:                       server.Options{BindAddress: "0"}, // the program has its own
		LeaderElection:                true,
		LeaderElectionID:              LeaseName,
		LeaderElectionNamespace:       o.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: new(true)}, // it may start more than once
	})
	if err != nil {
		return err
	}
	if err := errors.Join(o.watch(ctx, m), m.Add(manager.RunnableFunc(o.lead))); err != nil {
		return err
	}
	return m.Start(ctx)
}

// lead says that this replica is the leader for as long as it is.
func (o Options) lead(ctx context.Context) error {
	o.Log.Info("this replica publishes revisions")
	o.Metrics.leader.Set(1)
	<-ctx.Done()
	o.Metrics.leader.Set(0)
	return nil
}
