package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// TestMain lets this program stand for the agent: the real one needs a Redis,
// and has tests of its own.
func TestMain(m *testing.M) {
	if os.Getenv(agentenv.Prefix+"KIND") != "" {
		os.Exit(standInAgent(os.Args[1]))
	}
	os.Exit(m.Run())
}

// standInAgent holds as soon as it runs, with token 7.
func standInAgent(subcommand string) int {
	state := func(name string) string { return filepath.Join(os.Getenv(agentenv.Prefix+"STATE_DIR"), name) }
	held := filepath.Join(os.Getenv(agentenv.DirVar), "held")
	switch subcommand {
	case "init":
		f, err := os.OpenFile(state("epoch"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		_, _ = f.WriteString("+")
		return 0
	case "gate":
		return 0 // the agent answers its probe only once it holds
	case "prestop":
		return exitOf(os.WriteFile(state("terminating"), nil, 0o600))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", os.Getenv(agentenv.Prefix+"PROBE_LISTEN"))
	if err != nil || os.WriteFile(held, []byte("7\n"), 0o600) != nil {
		return 1
	}
	go func() { _ = http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	<-ctx.Done()
	return 87
}

func exitOf(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// trackedEvents leaves out what is not about order.
func trackedEvents(j *journal) []string {
	var got []string
	for _, e := range j.all() {
		got = append(got, string(e.what)+exitText(e.exit))
	}
	return got
}

// injectedPod is what the kubelet needs of a pod with an agent.
func injectedPod(restart corev1.RestartPolicy, script string) *corev1.Pod {
	agent := corev1.Container{
		Name: "holdfast-agent", Image: "agent", Command: []string{"/holdfast-agent", "run"},
		Env: []corev1.EnvVar{
			{Name: agentenv.Prefix + "KIND", Value: "mutex"},
			{Name: agentenv.Prefix + "RESOURCE", Value: "ns/etl"},
			{Name: agentenv.Prefix + "REDIS_URL_FILE", Value: "/etc/holdfast/redis/url"},
			{Name: agentenv.PodUIDVar, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "run", MountPath: "/var/run/holdfast"},
			{Name: "state", MountPath: "/var/lib/holdfast"},
			{Name: "redis", MountPath: "/etc/holdfast/redis"},
		},
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		RestartPolicyRules: []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn, Values: []int32{0}},
		}},
		StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/startz"}}},
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/holdfast-agent", "prestop"}},
		}},
	}
	init := corev1.Container{Name: "holdfast-init", Image: "agent", Command: []string{"/holdfast-agent", "init"}, Env: agent.Env}
	gate := corev1.Container{
		Name: "holdfast-gate", Image: "agent", Command: []string{"/holdfast-agent", "gate"},
		VolumeMounts: agent.VolumeMounts[:1],
	}
	app := corev1.Container{
		Name: "app", Image: "busybox", Command: []string{"/bin/sh", "-c", script},
		Env:          []corev1.EnvVar{{Name: agentenv.DirVar, Value: "/var/run/holdfast"}},
		VolumeMounts: agent.VolumeMounts[:1],
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "etl-1", Namespace: "ns", UID: "uid-1"},
		Spec: corev1.PodSpec{
			RestartPolicy:  restart,
			InitContainers: []corev1.Container{init, agent, gate},
			Containers:     []corev1.Container{app},
			Volumes: []corev1.Volume{
				{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "redis", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "holdfast-redis"}}},
			},
		},
	}
}

// endless is an app that ends with 0 on TERM only if the agent had been told
// before that the pod is ending.
const endless = `trap 'test -e "$HOLDFAST_DIR/../state/terminating"; exit $?' TERM; echo "token $(cat "$HOLDFAST_DIR/held")"; while :; do sleep 0.02; done`

// runPod runs object with a kubelet whose complaints fail the test.
func runPod(t *testing.T, object *corev1.Pod) (*pod, *journal, context.Context) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p, err := newPod(object, dir, node{agentBinary: program, secrets: filepath.Join(dir, "secrets")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, context.DeadlineExceeded)
	t.Cleanup(cancel)
	j := newJournal(nil)
	k := &kubelet{processes: testProcesses(t), journal: j, fail: func(err error) { t.Error(err) }}
	go k.run(ctx, p)
	return p, j, ctx
}

func waitFor(t *testing.T, ctx context.Context, j *journal, w what, after time.Time) event {
	t.Helper()
	e, err := j.wait(ctx, after, func(e event) bool { return e.what == w })
	if err != nil {
		t.Fatalf("waiting for %q: %v; seen: %q", w, err, trackedEvents(j))
	}
	return e
}

func TestKubeletRunsAJobToItsEnd(t *testing.T) {
	t.Parallel()
	p, j, ctx := runPod(t, injectedPod(corev1.RestartPolicyNever, `echo "token $(cat "$HOLDFAST_DIR/held")"`))
	waitFor(t, ctx, j, podEnded, time.Time{})
	want := []string{"agent started", "gate opened", "app started", "app ended", "agent ended (exit code 87)", "pod ended"}
	if diff := cmp.Diff(want, trackedEvents(j)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if p.app.last() != "token 7" {
		t.Errorf("the app read %q, want %q", p.app.last(), "token 7")
	}
	if p.currentPhase() != phaseDone {
		t.Errorf("phase %q, want %q", p.currentPhase(), phaseDone)
	}
}

func TestKubeletRestartsInPlaceWhenTheAgentDies(t *testing.T) {
	t.Parallel()
	p, j, ctx := runPod(t, injectedPod(corev1.RestartPolicyAlways, endless))
	waitFor(t, ctx, j, appStarted, time.Time{})
	waitForOutput(t, ctx, p)
	killed := time.Now()
	p.running.Load().kill()
	waitFor(t, ctx, j, appStarted, killed)
	want := []string{
		"agent started", "gate opened", "app started",
		"agent ended (killed)", "app ended (exit code 1)", "pod restarted", // no preStop hook has run
		"agent started", "gate opened", "app started",
	}
	if diff := cmp.Diff(want, trackedEvents(j)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	epoch, err := os.ReadFile(filepath.Join(p.dir, "state", "epoch"))
	if err != nil || string(epoch) != "++" {
		t.Errorf("init ran %q times (%v), want twice, on the same volume", epoch, err)
	}
}

func TestKubeletEndsADeletedPodInOrder(t *testing.T) {
	t.Parallel()
	p, j, ctx := runPod(t, injectedPod(corev1.RestartPolicyAlways, endless))
	waitFor(t, ctx, j, appStarted, time.Time{})
	waitForOutput(t, ctx, p)
	p.end <- deleted
	waitFor(t, ctx, j, podEnded, time.Time{})
	want := []string{
		"agent started", "gate opened", "app started",
		"app ended", "agent ended (exit code 87)", "pod ended", // exit code 0: the hook had run
	}
	if diff := cmp.Diff(want, trackedEvents(j)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestKubeletWithoutPowerRestartsNothing(t *testing.T) {
	t.Parallel()
	p, j, ctx := runPod(t, injectedPod(corev1.RestartPolicyAlways, endless))
	waitFor(t, ctx, j, appStarted, time.Time{})
	p.end <- powerCut
	waitFor(t, ctx, j, podEnded, time.Time{})
	want := []string{"agent started", "gate opened", "app started", "app ended (killed)", "pod ended"}
	if diff := cmp.Diff(want, trackedEvents(j)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// waitForOutput waits until the app has set its trap and spoken.
func waitForOutput(t *testing.T, ctx context.Context, p *pod) {
	t.Helper()
	if err := waitUntil(ctx, func() bool { return p.app.last() != "" }); err != nil {
		t.Fatal(err)
	}
}
