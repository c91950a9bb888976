package lockagent

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerWait = 5 * time.Second  // for the request to be there
	idleWait   = time.Minute      // for the next one of a connection
	writeWait  = 10 * time.Second // for an answer to be taken, beyond what it may wait itself

	answerGrace = 50 * time.Millisecond // for answers under way when the agent ends
)

// Serve answers on every door until the returned function is called, which
// ends the requests that still wait and closes the doors.
func Serve(ls *Listeners, agent *Agent, log *slog.Logger) (stop func()) {
	return serve(ls, agent, log)
}

func serve(ls *Listeners, agent subject, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	api := newServer(ctx, newAPI(agent), longestWait, log)
	probes := newServer(ctx, newProbes(agent), 0, log)
	for _, l := range ls.api {
		go serveOn(api, l, log)
	}
	if ls.probes != nil {
		go serveOn(probes, ls.probes, log)
	}
	asked := &execProbes{agent: agent}
	if ls.asking != nil {
		go func() {
			if err := asked.serve(ctx, ls.asking); ctx.Err() == nil {
				log.Error("listener ended", "addr", ls.asking.Addr().String(), "error", err.Error())
			}
		}()
	}
	return func() {
		cancel() // long polls answer with what is true now
		shutdown(api)
		shutdown(probes)
		asked.awaitGone(answerGrace)
		ls.Close()
	}
}

// newServer makes one whose requests end with ctx and may wait for longest.
func newServer(ctx context.Context, h http.Handler, longest time.Duration, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerWait, // no ReadTimeout: it would end a long poll, of which it takes the silence for the client's
		WriteTimeout:      longest + writeWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients that hang up
	}
}

func serveOn(s *http.Server, l net.Listener, log *slog.Logger) {
	if err := s.Serve(l); err != http.ErrServerClosed {
		log.Error("listener ended", "addr", l.Addr().String(), "error", err.Error())
	}
}

func shutdown(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), answerGrace)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close()
	}
}
