package main

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// Whatever is wrong with Redis, pods are admitted: publishing is off, and the log
// says why.
func TestLiveRevisionsAreOff(t *testing.T) {
	cluster := &rest.Config{Host: "https://127.0.0.1:1"}
	tests := map[string]struct {
		url    string // content of the file, none if empty
		config *rest.Config
		want   string
	}{
		"without a cluster": {"redis://127.0.0.1:1", nil, "the webhook knows no API server"},
		"without a Secret":  {"", cluster, "make the Secret holdfast-redis beside the webhook"},
		"with a bad URL":    {"http://user:secret@127.0.0.1", cluster, "--redis-dir="},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.url != "" {
				writeFile(t, filepath.Join(dir, "url"), []byte(tc.url))
			}
			var said strings.Builder
			if publishing(options{redisDir: dir}, tc.config, prometheus.NewRegistry(), logTo(&said)) != nil {
				t.Error("something is published")
			}
			if log := said.String(); !strings.Contains(log, "live revisions are off") || !strings.Contains(log, tc.want) || strings.Contains(log, "secret@") {
				t.Errorf("logged %s, want %s", log, tc.want)
			}
		})
	}
}

func TestLiveRevisionsNeedAClusterAndARedis(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "url"), []byte("redis://127.0.0.1:1\n"))
	if publishing(options{redisDir: dir}, &rest.Config{Host: "https://127.0.0.1:1"}, prometheus.NewRegistry(), logTo(io.Discard)) == nil {
		t.Error("nothing is published")
	}
}
