//go:build e2e

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exitBusy is what the gate ends with when the lock is not to be had.
const exitBusy = 75

// onBusy is a policy for a Job whose pod has failed for that and nothing else. It
// cannot name the gate, which is not in the Job's template.
func onBusy(action batchv1.PodFailurePolicyAction) func(*batchv1.JobSpec) {
	return func(spec *batchv1.JobSpec) {
		spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: action,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{exitBusy},
			},
		}}}
	}
}

// busyJob is a short one; change comes last.
func (s *trial) busyJob(name string, annotations map[string]string, change func(*batchv1.JobSpec)) {
	s.t.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}
	j.Spec.Template = s.template(name, annotations, never, apps(app("app", "-run=1s")))
	change(&j.Spec)
	if _, err := shared.BatchV1().Jobs(s.namespace).Create(s.t.Context(), j, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// awaitJob waits for the end of a Job, and returns how it has ended.
func (s *trial) awaitJob(within time.Duration, name string) (how batchv1.JobCondition) {
	s.t.Helper()
	s.eventually(within, "Job "+name+" has ended", func() bool {
		job, err := shared.BatchV1().Jobs(s.namespace).Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, c := range job.Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
				how = c
				return true
			}
		}
		return false
	})
	return how
}

// mustHaveFailedBusy checks that a Job has failed by its policy, for one pod whose
// gate says why.
func (s *trial) mustHaveFailedBusy(name string, how batchv1.JobCondition, why string) {
	s.t.Helper()
	if how.Type != batchv1.JobFailed || how.Reason != batchv1.JobReasonPodFailurePolicy || !strings.Contains(how.Message, gateName) {
		s.t.Errorf("the Job has ended as %s, %s, %q; want it failed by its policy for the gate", how.Type, how.Reason, how.Message)
	}
	pods := s.podsOf(name)
	if len(pods) != 1 {
		s.t.Fatalf("the Job had %d pods, want 1", len(pods))
	}
	end := status(&pods[0], gateName).State.Terminated
	if end == nil || end.ExitCode != exitBusy || !strings.Contains(end.Message, "("+why+": ") {
		s.t.Errorf("the gate ended with %+v, want %d and %s in its message", end, exitBusy, why)
	}
}

// A Job that must not wait fails at once, without its app having run and without a
// trace in Redis; one that comes when the lock is free runs.
func TestABusyLockFailsAJob(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("holder", mutex(lockName))
	s.awaitLives(startWithin, 1)
	before := s.mustHold()
	keys := mutex(lockName, "on-busy", "fail")
	s.busyJob("busy", keys, onBusy(batchv1.PodFailurePolicyActionFailJob))
	s.mustHaveFailedBusy("busy", s.awaitJob(startWithin, "busy"), "busy")
	if n := s.waiters(); n != 0 || len(s.lives()) != 1 {
		t.Errorf("%d in the queue, %d apps have run; want none, and the holder's", n, len(s.lives()))
	}
	s.mustBeSame(before)

	s.delete("holder", -1)
	s.eventually(startWithin, "the lock is free", func() bool { _, held := s.held(); return !held })
	s.busyJob("free", keys, onBusy(batchv1.PodFailurePolicyActionFailJob))
	if how := s.awaitJob(startWithin, "free"); how.Type != batchv1.JobComplete {
		t.Errorf("with the lock free the Job has ended as %s: %s", how.Type, how.Message)
	}
}

// Without a policy each attempt that was busy counts as a failure of the pod: where
// pods are not restarted as a new pod, else as a restart of the gate.
func TestABusyLockCountsAgainstTheBackoffLimit(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]corev1.RestartPolicy{
		"Never": corev1.RestartPolicyNever, "OnFailure": corev1.RestartPolicyOnFailure,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.pod("holder", mutex(lockName))
			s.awaitLives(startWithin, 1)
			s.busyJob("busy", mutex(lockName, "on-busy", "fail"), func(spec *batchv1.JobSpec) {
				spec.BackoffLimit, spec.Template.Spec.RestartPolicy = new(int32(1)), restart
			})
			how := s.awaitJob(startWithin, "busy")
			if how.Type != batchv1.JobFailed || how.Reason != batchv1.JobReasonBackoffLimitExceeded {
				t.Errorf("the Job has ended as %s, %s; want it failed by its back-off limit", how.Type, how.Reason)
			}
			if n := s.waiters(); n != 0 || len(s.lives()) != 1 {
				t.Errorf("%d in the queue, %d apps have run; want none, and the holder's", n, len(s.lives()))
			}
		})
	}
}

// The time counts from queueing: an agent that is killed takes the pod with it, which
// restarts in place and waits on for what is left; a gate that is killed is started
// again, and fails the pod only with its own exit code.
func TestAWaitTimeoutOutlivesWhoWaits(t *testing.T) {
	t.Parallel()
	for name, victim := range map[string]func(*trial, *corev1.Pod) process{
		"the agent is killed": (*trial).agentOf,
		"the gate is killed":  (*trial).gateOf,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin(t).mustTimeOut(victim)
		})
	}
}

func (s *trial) mustTimeOut(victim func(*trial, *corev1.Pod) process) {
	s.t.Helper()
	const timeout, kill = 30 * time.Second, 25 * time.Second
	s.pod("holder", mutex(lockName))
	s.awaitLives(startWithin, 1)
	s.busyJob("late", mutex(lockName, "wait-timeout", "30s"), onBusy(batchv1.PodFailurePolicyActionFailJob))
	s.awaitWaiters(1)
	begin := boot()
	pod := s.podsOf("late")[0]
	pause(kill - (boot() - begin))
	s.signal(victim(s, &pod), syscall.SIGKILL)
	how := s.awaitJob(startWithin, "late")
	if took := boot() - begin; took < timeout-time.Second || took > timeout+kill-5*time.Second {
		s.t.Errorf("the Job failed %s after its pod had queued, want %s; it would be %s had the agent counted anew", took, timeout, timeout+kill)
	}
	s.mustHaveFailedBusy("late", how, "wait_timeout")
	if n := s.waiters(); n != 0 || len(s.lives()) != 1 {
		s.t.Errorf("%d in the queue, %d apps have run; want none, and the holder's", n, len(s.lives()))
	}
}

// A Deployment's pod tries again with each restart of its gate, after the kubelet's
// pause, during which it is in no queue.
func TestABusyDeploymentTriesAgain(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("holder", mutex(lockName))
	s.awaitLives(startWithin, 1)
	s.deployment("eager", mutex(lockName, "on-busy", "fail"))
	s.eventually(startWithin, "its pod is there", func() bool { return len(s.podsOf("eager")) == 1 })
	pod := s.podsOf("eager")[0].Name
	s.mustShow(pod, "Init:CrashLoopBackOff")
	s.eventually(2*time.Minute, "the gate was started three times", func() bool {
		return status(s.get(pod), gateName).RestartCount >= 2
	})
	s.eventually(startWithin, "nobody waits in line", func() bool { return s.waiters() == 0 })

	s.delete("holder", -1)
	next := s.awaitLives(2*time.Minute, 2)[1]
	if next.pod != pod || next.start < s.lives()[0].last {
		t.Errorf("%s started while the holder lived", next.pod)
	}
	if restarts := status(s.get(pod), agentName).RestartCount; restarts != 0 {
		t.Errorf("the agent was restarted %d times, want 0: only the gate fails", restarts)
	}
}

// A CronJob whose run finds another one at work skips that run; the next one is as
// if nothing had been.
func TestACronJobSkipsARunThatIsBusy(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.pod("holder", mutex(lockName))
	s.awaitLives(startWithin, 1)
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "cron"}}
	c.Spec.Schedule = "* * * * *"
	c.Spec.JobTemplate.Labels = map[string]string{"app": "cron"}
	c.Spec.JobTemplate.Spec.Template = s.template("run", mutex(lockName, "on-busy", "fail"), never, apps(app("app", "-run=1s")))
	onBusy(batchv1.PodFailurePolicyActionFailJob)(&c.Spec.JobTemplate.Spec)
	if _, err := shared.BatchV1().CronJobs(s.namespace).Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	jobs := func() []batchv1.Job {
		list, err := shared.BatchV1().Jobs(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=cron"})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	s.eventually(3*time.Minute, "a run was skipped", func() bool {
		return len(jobs()) > 0 && jobs()[0].Status.Failed == 1
	})
	if n := len(s.podsOf("run")); n != 1 {
		t.Errorf("the skipped run had %d pods, want 1", n)
	}
	s.delete("holder", -1)
	s.eventually(3*time.Minute, "a later run is complete", func() bool {
		for _, j := range jobs() {
			if j.Status.CompletionTime != nil {
				return true
			}
		}
		return false
	})
	s.stopCron(s.namespace, "cron")
}
