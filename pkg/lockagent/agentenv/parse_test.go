package agentenv

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// lookup reads variables from a map.
func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { s, ok := vars[name]; return s, ok }
}

// least is what an agent cannot do without.
func least() map[string]string {
	return map[string]string{
		"HOLDFAST_KIND": "mutex", "HOLDFAST_RESOURCE": "orders/etl", "HOLDFAST_REDIS_URL": "redis://127.0.0.1:6379",
	}
}

// with returns the least variables and more: name, value, name, value.
func with(more ...string) map[string]string {
	vars := least()
	for i := 0; i < len(more); i += 2 {
		vars["HOLDFAST_"+more[i]] = more[i+1]
	}
	return vars
}

// and adds more variables: name, value, name, value.
func and(vars map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		vars["HOLDFAST_"+more[i]] = more[i+1]
	}
	return vars
}

func TestParseFillsInDefaults(t *testing.T) {
	want := Default()
	want.Kind, want.Resource, want.Redis.URL = Mutex, "orders/etl", "redis://127.0.0.1:6379"
	want.Permits, want.OnLost, want.Margin = 1, LostStop, 6*time.Second
	got, err := Parse(lookup(least()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestParseDefaultsThatDependOnOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		vars map[string]string
		got  func(Config) any
		want any
	}{
		"without a gate the app is told":       {with("GATE", "none"), func(c Config) any { return c.OnLost }, LostNotify},
		"the margin follows the TTL":           {with("TTL", "10s"), func(c Config) any { return c.Margin }, 2 * time.Second},
		"an empty variable is an unset one":    {with("TTL", ""), func(c Config) any { return c.TTL }, 30 * time.Second},
		"but not for the probes":               {with("PROBE_LISTEN", ""), func(c Config) any { return c.ProbeListen }, ""},
		"nor for the API":                      {with("LISTEN", ""), func(c Config) any { return c.Listen }, ""},
		"no guard":                             {with("REDIS_GUARD", "off"), func(c Config) any { return c.Redis.Guard }, time.Duration(0)},
		"a pod is known by its UID":            {with("POD_UID", "c0ffee"), func(c Config) any { return c.InPod() }, true},
		"outside a pod there is none":          {least(), func(c Config) any { return c.InPod() }, false},
		"other variables are none of ours":     {with("FUTURE", "x"), func(c Config) any { return c.StopsApp() }, true},
		"levels are written in lower case too": {with("LOG_LEVEL", "debug"), func(c Config) any { return c.LogLevel }, slog.LevelDebug},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(lookup(tc.vars))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.got(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const (
		aDuration = `: must be a duration such as "30s" or "1m30s"`
		noWait    = ": needs HOLDFAST_ON_BUSY=wait, and a HOLDFAST_WAIT_TIMEOUT that is no less than HOLDFAST_TTL, if any: who does not wait cannot be handed a lock"
		noGate    = ": with HOLDFAST_GATE=none there is no gate that could fail: leave it out"
		aTTL      = ": must be from 1s to 60s, in whole milliseconds"
	)
	for name, tc := range map[string]struct {
		vars map[string]string
		want string
	}{
		"an unknown kind":             {with("KIND", "Mutex"), `HOLDFAST_KIND="Mutex": must be one of mutex, semaphore`},
		"an unknown gate":             {with("GATE", "open"), `HOLDFAST_GATE="open": must be one of start, exec, none`},
		"an unknown on-busy":          {with("ON_BUSY", "retry"), `HOLDFAST_ON_BUSY="retry": must be one of wait, fail, skip`},
		"an unknown on-lost":          {with("ON_LOST", "kill"), `HOLDFAST_ON_LOST="kill": must be one of stop, notify`},
		"an unknown handoff":          {with("HANDOFF", "on"), `HOLDFAST_HANDOFF="on": must be one of off, rollout`},
		"an unknown level":            {with("LOG_LEVEL", "loud"), `HOLDFAST_LOG_LEVEL="loud": must be one of debug, info, warn, error`},
		"no permits":                  {with("PERMITS", "0"), `HOLDFAST_PERMITS="0": must be a whole number from 1 to 100000`},
		"negative permits":            {with("PERMITS", "-1"), `HOLDFAST_PERMITS="-1": must be a whole number from 1 to 100000`},
		"half a permit":               {with("PERMITS", "1.5"), `HOLDFAST_PERMITS="1.5": must be a whole number from 1 to 100000`},
		"permits without end":         {with("PERMITS", "1e9"), `HOLDFAST_PERMITS="1e9": must be a whole number from 1 to 100000`},
		"a mutex of two":              {with("PERMITS", "2"), `HOLDFAST_PERMITS="2": a mutex has exactly one permit; use HOLDFAST_KIND=semaphore`},
		"a semaphore of none":         {with("KIND", "semaphore"), `HOLDFAST_PERMITS: is missing: a semaphore needs the number of permits`},
		"a priority too high":         {with("PRIORITY", "101"), `HOLDFAST_PRIORITY="101": must be a whole number from -100 to 100`},
		"a revision past 2^53":        {with("REVISION", "9007199254740993"), `HOLDFAST_REVISION="9007199254740993": must be a whole number from 0 to 9007199254740992`},
		"a TTL without unit":          {with("TTL", "30"), `HOLDFAST_TTL="30"` + aDuration},
		"a negative TTL":              {with("TTL", "-1s"), `HOLDFAST_TTL="-1s"` + aDuration},
		"a TTL that overflows":        {with("TTL", "1e9h"), `HOLDFAST_TTL="1e9h"` + aDuration},
		"no TTL at all":               {with("TTL", "0s"), `HOLDFAST_TTL="0s"` + aTTL},
		"a TTL too short":             {with("TTL", "999ms"), `HOLDFAST_TTL="999ms"` + aTTL},
		"a TTL beyond the guard":      {with("TTL", "61s"), `HOLDFAST_TTL="1m1s"` + aTTL},
		"a TTL finer than the store":  {with("TTL", "20s1us"), `HOLDFAST_TTL="20.000001s"` + aTTL},
		"a margin of all":             {with("MARGIN", "30s"), `HOLDFAST_MARGIN="30s": must be less than HOLDFAST_TTL, which is 30s`},
		"a wait-timeout of words":     {with("WAIT_TIMEOUT", "soon"), `HOLDFAST_WAIT_TIMEOUT="soon"` + aDuration},
		"a wait-timeout of no wait":   {with("ON_BUSY", "fail", "WAIT_TIMEOUT", "1h"), `HOLDFAST_WAIT_TIMEOUT="1h0m0s": goes only with HOLDFAST_ON_BUSY=wait`},
		"a wait-timeout at no gate":   {with("GATE", "none", "WAIT_TIMEOUT", "1h"), `HOLDFAST_WAIT_TIMEOUT="1h0m0s"` + noGate},
		"failing at no gate":          {with("GATE", "none", "ON_BUSY", "fail"), `HOLDFAST_ON_BUSY="fail"` + noGate},
		"a guard that is switched on": {with("REDIS_GUARD", "on"), `HOLDFAST_REDIS_GUARD="on": must be "off" or a duration such as "60s"`},
		"perhaps an eviction":         {with("REDIS_ALLOW_EVICTION", "yes"), `HOLDFAST_REDIS_ALLOW_EVICTION="yes": must be true or false`},
		"negative replicas":           {with("REDIS_WAIT", "-1"), `HOLDFAST_REDIS_WAIT="-1": must be a whole number from 0 to 100`},
		"handoff without a workload":  {and(with("HANDOFF", "rollout", "POD_UID", "uid"), "REVISION", "1"), `HOLDFAST_WORKLOAD: is missing: HOLDFAST_HANDOFF=rollout needs the workload's UID`},
		"handoff without a revision":  {and(with("HANDOFF", "rollout", "POD_UID", "uid"), "WORKLOAD", "c0ffee"), `HOLDFAST_REVISION: is missing: HOLDFAST_HANDOFF=rollout needs the revision, from 1`},
		"handoff outside of a pod": {
			with("HANDOFF", "rollout", "WORKLOAD", "c0ffee", "REVISION", "1"),
			`HOLDFAST_POD_UID: is missing: HOLDFAST_HANDOFF=rollout needs a kubelet, which alone tells whether the app has been stopped`,
		},
		"handoff of an app that is told": {
			and(with("HANDOFF", "rollout", "POD_UID", "uid"), "WORKLOAD", "c0ffee", "REVISION", "1", "ON_LOST", "notify"),
			`HOLDFAST_HANDOFF="rollout": needs HOLDFAST_ON_LOST=stop: an app that is only told of a loss cannot be stopped for a newer revision`,
		},
		"handoff of who does not wait": {
			and(with("HANDOFF", "rollout", "POD_UID", "uid"), "WORKLOAD", "c0ffee", "REVISION", "1", "ON_BUSY", "fail"), `HOLDFAST_HANDOFF="rollout"` + noWait,
		},
		"handoff of who does not wait a TTL": {
			and(with("HANDOFF", "rollout", "POD_UID", "uid"), "WORKLOAD", "c0ffee", "REVISION", "1", "WAIT_TIMEOUT", "29s"), `HOLDFAST_HANDOFF="rollout"` + noWait,
		},
		"two addresses": {with("REDIS_URL_FILE", "/url"), `HOLDFAST_REDIS_URL_FILE="/url": HOLDFAST_REDIS_URL is set too: keep one of them`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(lookup(tc.vars))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever mends one variable should not find the next only then: those that are
// missing come with those that are bad, each once, and none that only follows.
func TestParseTellsAllErrorsAtOnce(t *testing.T) {
	_, err := Parse(lookup(map[string]string{
		"HOLDFAST_KIND": "semaphor", "HOLDFAST_TTL": "61", "HOLDFAST_MARGIN": "40s", "HOLDFAST_PERMITS": "many",
	}))
	var got []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var bad *VarError
		if !errors.As(e, &bad) {
			t.Fatalf("error %v is no VarError", e)
		}
		got = append(got, bad.Name)
	}
	want := []string{"HOLDFAST_KIND", "HOLDFAST_PERMITS", "HOLDFAST_TTL", "HOLDFAST_RESOURCE", "HOLDFAST_REDIS_URL"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables complained about (-want +got):\n%s", diff)
	}
}

// word is text that a variable can hold.
func word(t *rapid.T, label string) string {
	return rapid.StringMatching(`[ -~äß€]{1,20}`).Draw(t, label)
}

// anyConfig draws a configuration that the webhook may write.
func anyConfig(t *rapid.T) Config {
	dur := func(label string, low, high time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, label))
	}
	c := Config{
		Kind:        rapid.SampledFrom([]Kind{Mutex, Semaphore}).Draw(t, "kind"),
		Resource:    word(t, "resource"),
		Permits:     1,
		TTL:         dur("ttl", 1000, 60_000) * time.Millisecond,
		Gate:        rapid.SampledFrom([]Gate{GateStart, GateExec, GateNone}).Draw(t, "gate"),
		OnLost:      rapid.SampledFrom([]OnLost{LostStop, LostNotify}).Draw(t, "on-lost"),
		StopGrace:   dur("stop-grace", 0, time.Hour),
		GracePeriod: dur("grace-period", 0, time.Hour),
		Priority:    rapid.IntRange(-100, 100).Draw(t, "priority"),
		Handoff:     rapid.SampledFrom([]Handoff{HandoffOff, HandoffRollout}).Draw(t, "handoff"),
		Workload:    rapid.SampledFrom([]string{"", "c0ffee"}).Draw(t, "workload"),
		ReplicaSet:  rapid.SampledFrom([]string{"", "decade"}).Draw(t, "replicaset"),
		Revision:    rapid.Int64Range(0, 1<<53).Draw(t, "revision"),
		Redis: Redis{
			Wait:         rapid.IntRange(0, 100).Draw(t, "redis-wait"),
			Guard:        dur("guard", 0, time.Minute),
			PasswordFile: rapid.SampledFrom([]string{"", "/etc/holdfast/redis/password"}).Draw(t, "password-file"),

			AllowEviction: rapid.Bool().Draw(t, "allow-eviction"),
		},
		Dir:         word(t, "dir"),
		StateDir:    word(t, "state-dir"),
		Listen:      rapid.SampledFrom([]string{"", "localhost:8650", "127.0.0.1:9"}).Draw(t, "listen"),
		ProbeListen: rapid.SampledFrom([]string{"", ":8651", ":9000"}).Draw(t, "probe-listen"),
		LogLevel:    slog.Level(rapid.IntRange(-8, 12).Draw(t, "level")),
		Pod:         Pod{Name: rapid.SampledFrom([]string{"", "etl-0"}).Draw(t, "pod")},
	}
	c.Margin = dur("margin", 1, c.TTL-1)
	c.OnBusy = BusyWait
	if c.Gate != GateNone {
		c.OnBusy = rapid.SampledFrom([]OnBusy{BusyWait, BusyFail, BusySkip}).Draw(t, "on-busy")
	}
	if c.Gate != GateNone && c.OnBusy == BusyWait {
		c.WaitTimeout = dur("wait-timeout", 0, 1000*time.Hour)
	}
	if c.Kind == Semaphore {
		c.Permits = rapid.IntRange(1, 100_000).Draw(t, "permits")
	}
	if !c.WaitsForHandoff() {
		c.Handoff = HandoffOff
	}
	if c.HandsOver() {
		c.OnLost, c.Workload, c.Revision = LostStop, "c0ffee", max(1, c.Revision)
		c.Pod.UID = "decaf"
	}
	if rapid.Bool().Draw(t, "url as a file") {
		c.Redis.URLFile = word(t, "url-file")
	} else {
		c.Redis.URL = word(t, "url")
	}
	return c
}

func TestParseReadsWhatEnvWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyConfig(t)
		vars := map[string]string{}
		for _, v := range want.Env() {
			if _, twice := vars[v.Name]; twice || !strings.HasPrefix(v.Name, Prefix) {
				t.Fatalf("%s is written twice, or is not ours", v.Name)
			}
			vars[v.Name] = v.Value
		}
		got, err := Parse(lookup(vars))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("config (-want +got):\n%s", diff)
		}
	})
}

// A pod spec that says only what is not the default is one that people can read.
func TestEnvLeavesDefaultsOut(t *testing.T) {
	c, err := Parse(lookup(least()))
	if err != nil {
		t.Fatal(err)
	}
	want := []Var{
		{"HOLDFAST_KIND", "mutex"},
		{"HOLDFAST_RESOURCE", "orders/etl"},
		{"HOLDFAST_PERMITS", "1"},
		{"HOLDFAST_MARGIN", "6s"},
		{"HOLDFAST_ON_LOST", "stop"},
		{"HOLDFAST_REDIS_URL", "redis://127.0.0.1:6379"},
	}
	if diff := cmp.Diff(want, c.Env()); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}
