//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// How long the way from one app to the next takes, against what a plain pod needs
// from the end of an init container to its app. Nothing else runs meanwhile.
func TestGateLatency(t *testing.T) {
	for i := range floorTimes {
		floor(t, i)
	}
	const times = 7
	s := begin(t)
	for i := range times + 1 {
		s.pod(fmt.Sprintf("pod-%d", i), mutex(lockName), never, apps(app("app", "-run=2s")))
		if i == 0 {
			s.awaitLives(startWithin, 1)
		}
	}
	lives := s.awaitLives(time.Duration(times)*startWithin, times+1)
	for i := range times {
		before, after := lives[i], lives[i+1]
		granted := grantedAt(t, after.token)
		figure(handover, figureFree, "s", (granted - before.last).Seconds())
		figure(handover, figureGate, "s", (after.start - granted).Seconds())
	}
	gate, plain := median(figureValues(figureGate)), median(figureValues(figureFloor))
	figure(handover, "the gate's latency, as a multiple of a plain pod's", "", gate/plain)
	if over := gate - plain; over > 1 {
		t.Errorf("the gate adds %.3f s to a plain pod's %.3f s, want 0.3 s, or 1 s on a busy machine", over, plain)
	}
}

const floorTimes = 8

// The names of figures that are compared.
const (
	figureFree  = "end of an app that ends by itself → the lock is the next pod's"
	figureGate  = "the lock is the next pod's → first line of its app"
	figureFloor = "a plain pod: end of an init container → first line of its app"
)

// floor measures a pod that Holdfast has nothing to do with.
func floor(t *testing.T, i int) {
	t.Helper()
	s := begin(t)
	s.pod(fmt.Sprintf("plain-%d", i), nil, never, func(spec *corev1.PodSpec) {
		// The kubelet looks once a second: the ends are spread over such a second.
		run := time.Second + time.Duration(i)*time.Second/floorTimes
		spec.InitContainers = []corev1.Container{app("init", "-lock=none", "-run="+run.String())}
		spec.Containers = []corev1.Container{app("app", "-lock=none", "-run=1s")}
	})
	lives := s.awaitLives(startWithin, 2)
	figure(handover, figureFloor, "s", (lives[1].start - lives[0].at("end", "")).Seconds())
}
