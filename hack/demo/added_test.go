package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestAdded(t *testing.T) {
	after := injectedPod(corev1.RestartPolicyAlways, "true")
	before := after.DeepCopy()
	before.Spec.InitContainers, before.Spec.Volumes = nil, nil
	before.Spec.Containers[0].Env, before.Spec.Containers[0].VolumeMounts = nil, nil

	injected := []string{
		"init container holdfast-init",
		"sidecar        holdfast-agent; its failure restarts the pod",
		"init container holdfast-gate: ends, and lets the app start, once the lock is held",
		"volumes        run, state, redis",
		"in app         HOLDFAST_DIR, /var/run/holdfast",
	}
	cases := map[string]struct {
		change func(*corev1.Pod) // of what the webhook gave back
		want   []string
	}{
		"what injection adds": {change: func(*corev1.Pod) {}, want: injected},
		"an app's command that was changed": {
			change: func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"true"} },
			want:   append(injected[:5:5], "changed        container app"),
		},
		"an app that was removed": {
			change: func(p *corev1.Pod) { p.Spec.Containers = nil },
			want:   append(injected[:4:4], "changed        container app was removed"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := after.DeepCopy()
			tc.change(got)
			if diff := cmp.Diff(tc.want, added(before, got)); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
		})
	}
}
