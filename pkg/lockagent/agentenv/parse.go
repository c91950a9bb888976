package agentenv

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// VarError says what is wrong with one variable.
type VarError struct {
	Name  string // the variable
	Value string // what it was set to; empty if it is missing
	Err   error  // what it must be
}

// Error leaves out a value that looks like an address, which may have a login in
// it, wherever it was put by mistake.
func (e *VarError) Error() string {
	if e.Value == "" || strings.Contains(e.Value, "://") {
		return fmt.Sprintf("%s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s=%q: %v", e.Name, e.Value, e.Err)
}

func (e *VarError) Unwrap() error { return e.Err }

// Var is one variable to be set.
type Var struct{ Name, Value string }

// Parse reads the configuration through lookup, which is [os.LookupEnv] in the
// agent. The error joins one [VarError] for each variable that is missing, bad,
// or does not go with the others; the Config is of no use then.
func Parse(lookup func(string) (string, bool)) (Config, error) {
	c := Default()
	var errs []error
	bad := map[string]bool{}
	for _, v := range vars {
		s, ok := lookup(v.name)
		if !ok || s == "" && !v.mayBeEmpty {
			continue
		}
		if err := v.field(&c).set(s); err != nil {
			errs = append(errs, &VarError{v.name, s, err})
			bad[v.name] = true
		}
	}
	c.setDefaults()
	return c, errors.Join(append(errs, c.check(bad)...)...)
}

// setDefaults fills in what depends on other fields.
func (c *Config) setDefaults() {
	if c.Margin == 0 {
		c.Margin = c.TTL / 5
	}
	if c.OnLost == "" {
		c.OnLost = LostStop
		if c.Gate == GateNone {
			c.OnLost = LostNotify
		}
	}
	if c.Permits == 0 && c.Kind == Mutex {
		c.Permits = 1
	}
}

// check compares fields with each other. It names the variable to change, and
// keeps quiet about those that are bad already: their values were never read.
func (c *Config) check(bad map[string]bool) []error {
	var errs []error
	complain := func(name, value, format string, args ...any) {
		if name = Prefix + name; !bad[name] {
			errs = append(errs, &VarError{name, value, fmt.Errorf(format, args...)})
			bad[name] = true
		}
	}
	switch {
	case c.Kind == "":
		complain("KIND", "", "is missing: set it to mutex or semaphore")
	case c.Kind == Mutex && c.Permits != 1:
		complain("PERMITS", fmt.Sprint(c.Permits), "a mutex has exactly one permit; use HOLDFAST_KIND=semaphore")
	case c.Kind == Semaphore && c.Permits == 0:
		complain("PERMITS", "", "is missing: a semaphore needs the number of permits")
	}
	if c.Resource == "" {
		complain("RESOURCE", "", "is missing: set it to the lock's name, such as my-namespace/my-lock")
	}
	if c.TTL < time.Second || c.TTL > time.Minute || c.TTL%time.Millisecond != 0 {
		complain("TTL", c.TTL.String(), "must be from 1s to 60s, in whole milliseconds")
	}
	if c.Margin >= c.TTL && !bad[Prefix+"TTL"] {
		complain("MARGIN", c.Margin.String(), "must be less than HOLDFAST_TTL, which is %s", c.TTL)
	}
	if c.HandsOver() {
		c.checkHandoff(complain)
	}
	c.checkBusy(complain)
	switch {
	case c.Redis.URL == "" && c.Redis.URLFile == "":
		complain("REDIS_URL", "", "is missing: set it, or HOLDFAST_REDIS_URL_FILE, to an address such as redis://127.0.0.1:6379")
	case c.Redis.URL != "" && c.Redis.URLFile != "":
		complain("REDIS_URL_FILE", c.Redis.URLFile, "HOLDFAST_REDIS_URL is set too: keep one of them")
	}
	return errs
}

// checkHandoff asks for what a hand-over between revisions needs.
func (c *Config) checkHandoff(complain func(name, value, format string, args ...any)) {
	if !c.StopsApp() {
		complain("HANDOFF", string(c.Handoff), "needs HOLDFAST_ON_LOST=stop: an app that is only told of a loss cannot be stopped for a newer revision")
	}
	if !c.InPod() {
		complain("POD_UID", "", "is missing: HOLDFAST_HANDOFF=rollout needs a kubelet, which alone tells whether the app has been stopped")
	}
	if !c.WaitsForHandoff() {
		complain("HANDOFF", string(c.Handoff), "needs HOLDFAST_ON_BUSY=wait, and a HOLDFAST_WAIT_TIMEOUT that is no less than HOLDFAST_TTL, if any: who does not wait cannot be handed a lock")
	}
	if c.Workload == "" {
		complain("WORKLOAD", "", "is missing: HOLDFAST_HANDOFF=rollout needs the workload's UID")
	}
	if c.Revision == 0 {
		complain("REVISION", "", "is missing: HOLDFAST_HANDOFF=rollout needs the revision, from 1")
	}
}

// checkBusy refuses an end of the wait where nothing waits that could fail.
func (c *Config) checkBusy(complain func(name, value, format string, args ...any)) {
	if c.Gate == GateNone && c.OnBusy != BusyWait {
		complain("ON_BUSY", string(c.OnBusy), "with HOLDFAST_GATE=none there is no gate that could fail: leave it out")
	}
	switch {
	case c.WaitTimeout == 0:
	case c.OnBusy != BusyWait:
		complain("WAIT_TIMEOUT", c.WaitTimeout.String(), "goes only with HOLDFAST_ON_BUSY=wait")
	case c.Gate == GateNone:
		complain("WAIT_TIMEOUT", c.WaitTimeout.String(), "with HOLDFAST_GATE=none there is no gate that could fail: leave it out")
	}
}

// Env writes the configuration as variables, in the order of the table. What
// equals its default is left out. [Parse] reads the same Config back.
func (c Config) Env() []Var {
	defaults := Default()
	var out []Var
	for _, v := range vars {
		value := v.field(&c).get()
		if value == v.field(&defaults).get() {
			continue
		}
		out = append(out, Var{v.name, value})
	}
	return out
}
