package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { s, ok := vars[name]; return s, ok }
}

func TestVariablesMissing(t *testing.T) {
	p := launch(t, map[string]string{"HOLDFAST_DIR": t.TempDir(), "HOLDFAST_TTL": "61"})
	if code := p.exit(); code != lockagent.ExitConfig {
		t.Errorf("exit code %d, want %d", code, lockagent.ExitConfig)
	}
	var got []any
	for _, r := range p.records() {
		got = append(got, r["variable"])
	}
	want := []any{"HOLDFAST_TTL", "HOLDFAST_KIND", "HOLDFAST_RESOURCE", "HOLDFAST_REDIS_URL"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables in the log (-want +got):\n%s", diff)
	}
}

func TestConfigureRefusesWhatIsNotBuilt(t *testing.T) {
	base := map[string]string{"HOLDFAST_KIND": "mutex", "HOLDFAST_RESOURCE": "orders/etl", "HOLDFAST_REDIS_URL": "redis://localhost"}
	for name, tc := range map[string]struct{ variable, value, want string }{
		"a wrapped command":  {"GATE", "exec", `HOLDFAST_GATE="exec": is not supported yet`},
		"skipping when busy": {"ON_BUSY", "skip", `HOLDFAST_ON_BUSY="skip": is not supported yet`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configure(lookup(and(base, tc.variable, tc.value)))
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := configure(lookup(base)); err != nil {
		t.Errorf("a plain mutex: %v", err)
	}
}

// One round of mending must do.
func TestConfigureTellsAllAtOnce(t *testing.T) {
	_, err := configure(lookup(map[string]string{
		"HOLDFAST_KIND": "lock", "HOLDFAST_GATE": "exec", "HOLDFAST_REDIS_URL_FILE": "/no/such/file",
	}))
	for _, want := range []string{"HOLDFAST_KIND", "HOLDFAST_RESOURCE", "HOLDFAST_GATE", "HOLDFAST_REDIS_URL_FILE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to name %s", err, want)
		}
	}
}

func TestConfigureReadsTheURLFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	vars := map[string]string{"HOLDFAST_KIND": "mutex", "HOLDFAST_RESOURCE": "orders/etl", "HOLDFAST_REDIS_URL_FILE": file}
	if _, err := configure(lookup(vars)); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "HOLDFAST_REDIS_URL_FILE") {
		t.Errorf("error %v, want one that names the variable whose file is missing", err)
	}
	for content, want := range map[string]string{"redis://redis.example:6379\n": "redis://redis.example:6379", " \n": ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := configure(lookup(vars))
		if cfg.Redis.URL != want || (err != nil) != (want == "") {
			t.Errorf("file %q: URL %q, error %v; want %q", content, cfg.Redis.URL, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "is empty") {
			t.Errorf("file %q: error %v, want it to say that the file is empty", content, err)
		}
	}
}

// A kubelet restarts what ends: so it must not end at once. Outside a pod nobody
// waits for an error.
func TestRefuseRestsOnlyInAPod(t *testing.T) {
	for name, tc := range map[string]struct {
		uid   string
		until time.Duration // when TERM comes
		want  time.Duration
	}{
		"in a pod":                {"c0ffee", time.Hour, 10 * time.Second},
		"in a pod that is ending": {"c0ffee", 3 * time.Second, 3 * time.Second},
		"outside of one":          {"", time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.until)
				defer cancel()
				cfg := agentenv.Config{Dir: t.TempDir(), StateDir: t.TempDir(), Pod: agentenv.Pod{UID: tc.uid}}
				begin := time.Now()
				p := program{errorRest: 10 * time.Second}
				code := p.refuse(ctx, cfg, slog.New(slog.DiscardHandler), errors.New("no such thing"))
				if got := time.Since(begin); got != tc.want || code != lockagent.ExitConfig {
					t.Errorf("ended after %v with %d, want %v and %d", got, code, tc.want, lockagent.ExitConfig)
				}
			})
		})
	}
}

// The hold of an earlier process is one that nobody renews now.
func TestRefuseRemovesHeld(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	if err := os.WriteFile(held, []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	program{}.refuse(t.Context(), agentenv.Config{Dir: dir}, slog.New(slog.NewJSONHandler(&log, nil)), errors.New("no such thing"))
	if _, err := os.Stat(held); !os.IsNotExist(err) {
		t.Errorf("held is still there: %v", err)
	}
	if !strings.Contains(log.String(), "no such thing") {
		t.Errorf("log = %s, want the error", log.String())
	}
}

// The ports are shared by all containers of a pod, and on hostNetwork by all of
// the node (ptp-operator PR#133, telepresence#2704).
func TestCaseB50PortTakenEndsWithAdvice(t *testing.T) {
	redis := redistest.Start(t) // its port is one that is taken
	p := launch(t, and(variables(t, redis.SocketURL()), "LISTEN", redis.Addr))
	if code := p.exit(); code != lockagent.ExitConfig {
		t.Errorf("exit code %d, want %d", code, lockagent.ExitConfig)
	}
	for _, want := range []string{redis.Addr, "HOLDFAST_LISTEN", "holdfast.dev/agent-port"} {
		if !strings.Contains(p.output.String(), want) {
			t.Errorf("the log does not name %s", want)
		}
	}
}

// An agent that comes back beside its app and cannot start, since the Secret was
// changed for the worse, must not let the app run past the end of the hold.
func TestRefuseDoesNotRestBesideTheApp(t *testing.T) {
	for name, tc := range map[string]struct {
		record, epoch string
		want          time.Duration
	}{
		"the app may run":                {`{"owner":"a","epoch":3,"token":7}`, "3\n", 0},
		"the app of a lost hold may run": {`{"owner":"a","epoch":3,"lost":true}`, "3\n", 0},
		"the record cannot be read":      {`{"owner":`, "3\n", 0},
		"the epoch cannot be read":       {`{"owner":"a","epoch":3,"token":7}`, "", 0},
		"the pod has been restarted":     {`{"owner":"a","epoch":3,"token":7}`, "4\n", 10 * time.Second},
		"nothing was held yet":           {`{"owner":"a","epoch":3}`, "3\n", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := agentenv.Config{Dir: t.TempDir(), StateDir: t.TempDir(), Pod: agentenv.Pod{UID: "uid-1"}}
				for file, content := range map[string]string{"record.json": tc.record, "epoch": tc.epoch} {
					if err := os.WriteFile(filepath.Join(cfg.StateDir, file), []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				begin := time.Now()
				p := program{errorRest: 10 * time.Second}
				p.refuse(t.Context(), cfg, slog.New(slog.DiscardHandler), errors.New("no such thing"))
				if got := time.Since(begin); got != tc.want {
					t.Errorf("ended after %s, want %s", got, tc.want)
				}
			})
		})
	}
}
