package inject

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// startupProbe lets nothing follow, the liveness probe included, before the agent
// listens. Half a minute is longer than an agent rests that cannot be started.
func startupProbe(req *Request) *corev1.Probe {
	probe := &corev1.Probe{
		PeriodSeconds:                 1,
		SuccessThreshold:              1,
		FailureThreshold:              30,
		TerminationGracePeriodSeconds: new(int64(1)),
	}
	if req.Probe == ProbeExec {
		return byExec(probe, agentenv.ProbeTimeout-agentenv.ProbeLasts, "probe")
	}
	return byHTTP(probe, "/startz", req.Port+1)
}

// livenessProbe finds a frozen agent well before the hold ends, in the same time
// whichever way it asks. The grace is short since a frozen agent heeds no TERM.
func livenessProbe(req *Request) *corev1.Probe {
	every := max(time.Second, (req.Agent.TTL / 15).Truncate(time.Second))
	probe := &corev1.Probe{
		PeriodSeconds:                 int32(every / time.Second),
		SuccessThreshold:              1,
		FailureThreshold:              3,
		TerminationGracePeriodSeconds: new(int64(1)),
	}
	if req.Probe == ProbeExec {
		return byExec(probe, agentenv.ProbeTimeout, "probe", "--for", agentenv.ProbeLasts.String(), "--every", every.String())
	}
	return byHTTP(probe, "/livez", req.Port+1)
}

func byHTTP(probe *corev1.Probe, path string, port int) *corev1.Probe {
	probe.HTTPGet = &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port), Scheme: corev1.URISchemeHTTP}
	probe.TimeoutSeconds = 1
	return probe
}

// byExec gives the runtime time to start the process: how long the agent may take
// to answer is the process' own affair.
func byExec(probe *corev1.Probe, timeout time.Duration, args ...string) *corev1.Probe {
	probe.Exec = &corev1.ExecAction{Command: append([]string{agentProgram}, args...)}
	probe.TimeoutSeconds = int32(timeout / time.Second)
	return probe
}
