package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

var version = "dev" // set when linked

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // while serving
	exitUsage  = 2 // the command line, the settings or the certificate
)

// run is the program. It serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case o.version:
		_, _ = fmt.Fprintln(stdout, version)
		return exitOK
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	klog.SetSlogLogger(log)

	s, err := newServer(o, log)
	if err != nil {
		log.Error("cannot start", "error", err)
		return exitUsage
	}
	log.Info("starting", "version", version)
	if err := s.serve(ctx); err != nil {
		log.Error("stopped serving", "error", err)
		return exitFailed
	}
	log.Info("stopped")
	return exitOK
}

// newServer puts the parts together; it listens nowhere yet.
func newServer(o options, log *slog.Logger) (*server, error) {
	settings, err := inject.LoadSettings(o.config)
	if err != nil {
		return nil, err
	}
	cluster, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	owners, err := ownerLookup(cluster)
	if err != nil {
		return nil, err
	}
	cert, err := loadCertificate(o.tlsCert, o.tlsKey)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		cert.expiry(),
	)
	pods, err := inject.NewHandler(settings, owners, inject.NewMetrics(registry), log)
	if err != nil {
		return nil, err
	}
	return &server{
		log:     log,
		cert:    cert,
		publish: publishing(o, cluster, registry, log),
		endpoints: []endpoint{
			{name: "webhook", flag: "--listen", address: o.listen, handler: pods, tls: cert.tlsConfig()},
			{name: "metrics", flag: "--metrics-listen", address: o.metricsListen, handler: metricsHandler(registry)},
			{name: "health", flag: "--health-listen", address: o.healthListen, handler: healthHandler(cert)},
		},
	}, nil
}
