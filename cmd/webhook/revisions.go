package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/revisions"
)

// publishing prepares what tells waiting agents which revision their ReplicaSet
// has now. It is nil where that is off, for the reason that the log says; pods are
// admitted all the same.
func publishing(o options, config *rest.Config, registry prometheus.Registerer, log *slog.Logger) func(context.Context) {
	publisher, err := openPublisher(o.redisDir)
	if config == nil {
		err = errNoCluster
	}
	if err != nil {
		log.Warn("live revisions are off: after an undo a pod may wait until its predecessor is deleted", "reason", err)
		return nil
	}
	settings := revisions.Options{
		Config: config, Publisher: publisher, LeaseNamespace: o.leaseNamespace,
		Metrics: revisions.NewMetrics(registry), Log: log,
	}
	return func(ctx context.Context) {
		defer func() { _ = publisher.Close() }()
		revisions.Run(ctx, settings)
	}
}

// openPublisher reads the files of a Secret like those that agents have.
func openPublisher(dir string) (*redisstore.Publisher, error) {
	file := func(key string) string { return filepath.Join(dir, key) }
	url := file("url")
	if _, err := os.Stat(url); dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no Redis is known, for there is no file %s: make the Secret holdfast-redis beside the webhook, and restart it", url)
	}
	publisher, err := redisstore.OpenPublisher(redisstore.Options{
		URLFile:              url,
		UsernameFile:         file("username"),
		PasswordFile:         file("password"),
		SentinelUsernameFile: file("sentinel-username"),
		SentinelPasswordFile: file("sentinel-password"),
		CAFile:               file("ca.crt"),
		CertFile:             file("tls.crt"),
		KeyFile:              file("tls.key"),
	})
	if err != nil {
		return nil, fmt.Errorf("--redis-dir=%s: %w", dir, err)
	}
	return publisher, nil
}
