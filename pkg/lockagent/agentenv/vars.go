package agentenv

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Prefix starts the name of every variable.
const Prefix = "HOLDFAST_"

// Names of the variables that are written by others than [Config.Env]: the
// downward API fills those of the pod, and the app's containers get the last one.
const (
	PodNameVar      = Prefix + "POD_NAME"
	PodNamespaceVar = Prefix + "POD_NAMESPACE"
	PodUIDVar       = Prefix + "POD_UID"
	NodeVar         = Prefix + "NODE"
	DirVar          = Prefix + "DIR"
	URLVar          = Prefix + "URL" // the app's only: where the agent's API listens
)

// Names of the variables that the agent reads, or points to in an error, one by
// one.
const (
	StateDirVar    = Prefix + "STATE_DIR"
	ListenVar      = Prefix + "LISTEN"
	ProbeListenVar = Prefix + "PROBE_LISTEN"
)

// variable is one row of the table: a name and the field that it sets.
type variable struct {
	name  string
	field func(*Config) field
	// mayBeEmpty marks the variables for which "set, but empty" has a meaning
	// of its own; for the others it is the same as unset.
	mayBeEmpty bool
}

// field reads and writes one field of a Config as text.
type field struct {
	set func(string) error
	get func() string
}

// vars lists every variable, in the order in which they are written and
// complained about.
var vars = []variable{
	{name: Prefix + "KIND", field: func(c *Config) field { return oneOf(&c.Kind, Mutex, Semaphore) }},
	{name: Prefix + "RESOURCE", field: func(c *Config) field { return text(&c.Resource) }},
	{name: Prefix + "PERMITS", field: func(c *Config) field { return integer(&c.Permits, 1, 100_000) }},
	{name: Prefix + "TTL", field: func(c *Config) field { return duration(&c.TTL) }},
	{name: Prefix + "MARGIN", field: func(c *Config) field { return duration(&c.Margin) }},
	{name: Prefix + "GATE", field: func(c *Config) field { return oneOf(&c.Gate, GateStart, GateExec, GateNone) }},
	{name: Prefix + "ON_BUSY", field: func(c *Config) field { return oneOf(&c.OnBusy, BusyWait, BusyFail, BusySkip) }},
	{name: Prefix + "WAIT_TIMEOUT", field: func(c *Config) field { return duration(&c.WaitTimeout) }},
	{name: Prefix + "ON_LOST", field: func(c *Config) field { return oneOf(&c.OnLost, LostStop, LostNotify) }},
	{name: Prefix + "STOP_GRACE", field: func(c *Config) field { return duration(&c.StopGrace) }},
	{name: Prefix + "GRACE_PERIOD", field: func(c *Config) field { return duration(&c.GracePeriod) }},
	{name: Prefix + "PRIORITY", field: func(c *Config) field { return integer(&c.Priority, -100, 100) }},
	{name: Prefix + "HANDOFF", field: func(c *Config) field { return oneOf(&c.Handoff, HandoffOff, HandoffRollout) }},
	{name: Prefix + "WORKLOAD", field: func(c *Config) field { return text(&c.Workload) }},
	{name: Prefix + "REPLICASET", field: func(c *Config) field { return text(&c.ReplicaSet) }},
	{name: Prefix + "REVISION", field: func(c *Config) field { return integer(&c.Revision, 0, 1<<53) }},
	{name: Prefix + "REDIS_URL", field: func(c *Config) field { return text(&c.Redis.URL) }},
	{name: Prefix + "REDIS_URL_FILE", field: func(c *Config) field { return text(&c.Redis.URLFile) }},
	{name: Prefix + "REDIS_USERNAME_FILE", field: func(c *Config) field { return text(&c.Redis.UsernameFile) }},
	{name: Prefix + "REDIS_PASSWORD_FILE", field: func(c *Config) field { return text(&c.Redis.PasswordFile) }},
	{name: Prefix + "REDIS_CA_FILE", field: func(c *Config) field { return text(&c.Redis.CAFile) }},
	{name: Prefix + "REDIS_CERT_FILE", field: func(c *Config) field { return text(&c.Redis.CertFile) }},
	{name: Prefix + "REDIS_KEY_FILE", field: func(c *Config) field { return text(&c.Redis.KeyFile) }},
	{name: Prefix + "REDIS_SENTINEL_USERNAME_FILE", field: func(c *Config) field { return text(&c.Redis.SentinelUsernameFile) }},
	{name: Prefix + "REDIS_SENTINEL_PASSWORD_FILE", field: func(c *Config) field { return text(&c.Redis.SentinelPasswordFile) }},
	{name: Prefix + "REDIS_ALLOW_EVICTION", field: func(c *Config) field { return flag(&c.Redis.AllowEviction) }},
	{name: Prefix + "REDIS_WAIT", field: func(c *Config) field { return integer(&c.Redis.Wait, 0, 100) }},
	{name: Prefix + "REDIS_GUARD", field: func(c *Config) field { return durationOrOff(&c.Redis.Guard) }},
	{name: DirVar, field: func(c *Config) field { return text(&c.Dir) }},
	{name: StateDirVar, field: func(c *Config) field { return text(&c.StateDir) }},
	{name: ListenVar, field: func(c *Config) field { return text(&c.Listen) }, mayBeEmpty: true},
	{name: ProbeListenVar, field: func(c *Config) field { return text(&c.ProbeListen) }, mayBeEmpty: true},
	{name: Prefix + "LOG_LEVEL", field: func(c *Config) field { return level(&c.LogLevel) }},
	{name: PodNameVar, field: func(c *Config) field { return text(&c.Pod.Name) }},
	{name: PodNamespaceVar, field: func(c *Config) field { return text(&c.Pod.Namespace) }},
	{name: PodUIDVar, field: func(c *Config) field { return text(&c.Pod.UID) }},
	{name: NodeVar, field: func(c *Config) field { return text(&c.Pod.Node) }},
}

func text(p *string) field {
	return field{
		set: func(s string) error { *p = s; return nil },
		get: func() string { return *p },
	}
}

func oneOf[T ~string](p *T, allowed ...T) field {
	return field{
		set: func(s string) error {
			names := make([]string, len(allowed))
			for i, a := range allowed {
				if s == string(a) {
					*p = a
					return nil
				}
				names[i] = string(a)
			}
			return fmt.Errorf("must be one of %s", strings.Join(names, ", "))
		},
		get: func() string { return string(*p) },
	}
}

func integer[T int | int64](p *T, low, high int64) field {
	return field{
		set: func(s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < low || n > high {
				return fmt.Errorf("must be a whole number from %d to %d", low, high)
			}
			*p = T(n)
			return nil
		},
		get: func() string { return strconv.FormatInt(int64(*p), 10) },
	}
}

func flag(p *bool) field {
	return field{
		set: func(s string) error {
			if s != "true" && s != "false" {
				return fmt.Errorf("must be true or false")
			}
			*p = s == "true"
			return nil
		},
		get: func() string { return strconv.FormatBool(*p) },
	}
}

func duration(p *time.Duration) field {
	return field{
		set: func(s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 {
				return fmt.Errorf(`must be a duration such as "30s" or "1m30s"`)
			}
			*p = d
			return nil
		},
		get: func() string { return p.String() },
	}
}

func durationOrOff(p *time.Duration) field {
	d := duration(p)
	return field{
		set: func(s string) error {
			if s == "off" {
				*p = 0
				return nil
			}
			if err := d.set(s); err != nil {
				return fmt.Errorf(`must be "off" or a duration such as "60s"`)
			}
			return nil
		},
		get: func() string {
			if *p == 0 {
				return "off"
			}
			return d.get()
		},
	}
}

func level(p *slog.Level) field {
	return field{
		set: func(s string) error {
			if p.UnmarshalText([]byte(s)) != nil {
				return fmt.Errorf("must be one of debug, info, warn, error")
			}
			return nil
		},
		get: func() string { return strings.ToLower(p.String()) },
	}
}
