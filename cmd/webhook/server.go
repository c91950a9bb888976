package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// drain is how long requests under way may take after the end was asked for. The
// API server gives up on ours after five seconds.
const drain = 6 * time.Second

// server serves some endpoints until one fails or it is told to end.
type server struct {
	log       *slog.Logger
	cert      *certificate
	publish   func(context.Context) // until it ends, nil for nothing; no admission depends on it
	endpoints []endpoint
}

// endpoint is one listener and what answers there.
type endpoint struct {
	name    string
	flag    string // of its address
	address string // empty for none
	handler http.Handler
	tls     *tls.Config // nil for plain HTTP
}

// serve listens everywhere before it answers anywhere, so that readiness is
// never claimed by a server without its port.
func (s *server) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.cert.Start(ctx) })
	listeners, err := s.listen(ctx)
	if err != nil {
		group.Go(func() error { return err }) // ends what has started already
		return group.Wait()
	}
	for i, l := range listeners {
		if l != nil {
			group.Go(func() error { return s.endpoints[i].serve(ctx, l, s.log) })
		}
	}
	if s.publish != nil {
		group.Go(func() error {
			s.publish(ctx)
			return nil
		})
	}
	return group.Wait()
}

// listen opens a listener for each endpoint, nil for one without address. After
// an error none is open.
func (s *server) listen(ctx context.Context) ([]net.Listener, error) {
	listeners := make([]net.Listener, len(s.endpoints))
	for i, e := range s.endpoints {
		if e.address == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.address)
		if err != nil {
			for _, open := range listeners[:i] {
				if open != nil {
					_ = open.Close()
				}
			}
			return nil, fmt.Errorf("%s: %s=%s: %w", e.name, e.flag, e.address, err)
		}
		s.log.Info("listening", "endpoint", e.name, "address", l.Addr().String())
		listeners[i] = l
	}
	return listeners, nil
}

// serve answers on l until ctx ends, and then lets requests under way end.
func (e *endpoint) serve(ctx context.Context, l net.Listener, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           e.handler,
		TLSConfig:         e.tls,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       90 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.With("endpoint", e.name).Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		stopped <- srv.Shutdown(deadline)
	}()
	serve := srv.Serve
	if e.tls != nil {
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	return <-stopped
}

func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// healthHandler says whether the program runs, and whether the API server can
// use it.
func healthHandler(cert *certificate) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := cert.check(time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}
