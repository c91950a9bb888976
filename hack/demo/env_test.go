package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// localPod is a pod whose places here are known.
func localPod() *pod {
	return &pod{
		object: injectedPod(corev1.RestartPolicyNever, "true"), dir: "/tmp/pods/etl-1",
		node:    node{agentBinary: "/tmp/holdfast-agent", secrets: "/tmp/secrets"},
		apiPort: 20001, probePort: 20002,
	}
}

// holdfastVars are the variables of ours, sorted.
func holdfastVars(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !strings.HasPrefix(v, agentenv.Prefix) })
	slices.Sort(env)
	return env
}

// What the webhook says stays as it is, but for what cannot be the same here.
func TestAgentEnv(t *testing.T) {
	p := localPod()
	agent, err := p.agentContainer()
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.agentEnv(agent)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HOLDFAST_DIR=/tmp/pods/etl-1/run",
		"HOLDFAST_KIND=mutex",
		"HOLDFAST_LISTEN=127.0.0.1:20001",
		"HOLDFAST_MARGIN=6s",
		"HOLDFAST_ON_LOST=stop",
		"HOLDFAST_PERMITS=1",
		"HOLDFAST_POD_UID=uid-1",
		"HOLDFAST_PROBE_LISTEN=127.0.0.1:20002",
		"HOLDFAST_REDIS_GUARD=off",
		"HOLDFAST_REDIS_URL_FILE=/tmp/secrets/holdfast-redis/url",
		"HOLDFAST_RESOURCE=ns/etl",
		"HOLDFAST_STATE_DIR=/tmp/pods/etl-1/state",
	}
	if diff := cmp.Diff(want, holdfastVars(got)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestAppEnv(t *testing.T) {
	p := localPod()
	app := p.object.Spec.Containers[0]
	app.Env = append(app.Env,
		corev1.EnvVar{Name: agentenv.URLVar, Value: "http://127.0.0.1:8650"},
		corev1.EnvVar{Name: "REGION", Value: "asia"})
	got, err := p.appEnv(&app)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"HOLDFAST_DIR=/tmp/pods/etl-1/run", "HOLDFAST_URL=http://127.0.0.1:20001"}
	if diff := cmp.Diff(want, holdfastVars(got)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if !slices.Contains(got, "REGION=asia") {
		t.Errorf("its own variable is missing in %q", got)
	}
}

func TestDeclaredEnvRefusesWhatItCannotKnow(t *testing.T) {
	p := localPod()
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	cases := map[string]struct {
		source  *corev1.EnvVarSource
		wantErr string
	}{
		"a field of the pod":   {source: field("metadata.namespace")},
		"a field not known":    {source: field("status.podIP"), wantErr: "container app: X: field status.podIP is not known here"},
		"a key of a ConfigMap": {source: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k"}}, wantErr: "container app: X: only fieldRef is known here"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := p.declaredEnv(&corev1.Container{Name: "app", Env: []corev1.EnvVar{{Name: "X", ValueFrom: tc.source}}})
			if diff := cmp.Diff(tc.wantErr, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgv(t *testing.T) {
	p := localPod()
	cases := map[string]struct {
		container corev1.Container
		want      []string
		wantErr   string
	}{
		"the agent, by its path":   {container: corev1.Container{Image: "agent", Command: []string{"/holdfast-agent", "run"}}, want: []string{"/tmp/holdfast-agent", "run"}},
		"the agent, by entrypoint": {container: corev1.Container{Image: "agent", Args: []string{"init"}}, want: []string{"/tmp/holdfast-agent", "init"}},
		"an app": {
			container: corev1.Container{Image: "busybox", Command: []string{"sh", "-c"}, Args: []string{"true"}},
			want:      []string{"sh", "-c", "true"},
		},
		"an app without a command": {
			container: corev1.Container{Name: "app", Image: "busybox", Args: []string{"true"}},
			wantErr:   "container app has no command, and its image's own cannot be known here",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := p.argv(&tc.container)
			if diff := cmp.Diff(tc.wantErr, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocalPath(t *testing.T) {
	p := localPod()
	agent, err := p.agentContainer()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/var/run/holdfast":           "/tmp/pods/etl-1/run",
		"/var/run/holdfast/held":      filepath.Join("/tmp/pods/etl-1/run", "held"),
		"/var/run/holdfast-2":         "/var/run/holdfast-2", // on no volume
		"/etc/holdfast/redis/ca.crt":  "/tmp/secrets/holdfast-redis/ca.crt",
		"/var/lib/holdfast/record/ab": "/tmp/pods/etl-1/state/record/ab",
	} {
		if got := p.localPath(agent, path); got != want {
			t.Errorf("localPath(%q) = %q, want %q", path, got, want)
		}
	}
}
