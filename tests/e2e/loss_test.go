//go:build e2e

package e2e

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// When Redis is silent, the app is dead before nine tenths of the TTL are over,
// whatever it thinks of TERM. Once Redis is back the pod goes on, with a greater
// token, and says why it was stopped. One pod at a time: how long a kubelet takes
// that stops many at once is recorded elsewhere.
func TestCaseB06LossStopsTheAppInTime(t *testing.T) {
	stubborn := func(name string) corev1.Container { return app(name, "-on-term=ignore") }
	family := app("app")
	family.Command = []string{"sh", "-c", "/bin/app -name=child & /bin/app -name=other & wait"}
	for name, tc := range map[string]struct {
		pod  []func(*corev1.PodSpec)
		apps int
		ttl  string
	}{
		"an app that heeds TERM":              {apps: 1, ttl: "20s"},
		"an app that ignores TERM":            {apps: 1, ttl: "20s", pod: []func(*corev1.PodSpec){apps(stubborn("app"))}},
		"a shell that forgets its children":   {apps: 2, ttl: "20s", pod: []func(*corev1.PodSpec){apps(family)}},
		"three containers that ignore TERM":   {apps: 3, ttl: "30s", pod: []func(*corev1.PodSpec){apps(stubborn("app"), stubborn("b"), stubborn("c"))}},
		"a pod that is never restarted":       {apps: 1, ttl: "20s", pod: []func(*corev1.PodSpec){never}},
		"a grace period and a preStop of 40s": {apps: 1, ttl: "20s", pod: []func(*corev1.PodSpec){grace(40), apps(slow())}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			pod := s.pod("pod", mutex(lockName, "ttl", tc.ttl), tc.pod...)
			s.awaitLives(startWithin, tc.apps)
			first := s.mustHold()
			ttl, _ := time.ParseDuration(tc.ttl)

			end := s.cutOff()
			s.mustDieBy(end-ttl/10, tc.apps)
			figure(loss, name, "", share(s.lives(), end, ttl))
			s.mustShow("pod", atTheGateAgain)
			agent := s.agentOf(pod)
			s.eventually(end-boot()+2*time.Second, "the lock is free", func() bool { _, held := s.held(); return !held })

			s.link.restore()
			lives := s.awaitLives(startWithin, 2*tc.apps)
			second := s.mustHold()
			if second.token <= first.token {
				t.Errorf("the second hold has token %d, want more than %d", second.token, first.token)
			}
			if got := lives[tc.apps].token; got != second.tokenText() {
				t.Errorf("the app started with token %s, want %d", got, second.token)
			}
			loss := agent.stateJSON().LastLoss
			if loss == nil || loss.Reason != "expired" || loss.Token != first.token {
				t.Errorf("lastLoss is %+v, want reason expired, token %d", loss, first.token)
			}
		})
	}
}

// slow is an app whose hook and own end take long, which a loss does not wait for.
func slow() corev1.Container {
	c := app("app", "-on-term=30s")
	c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 35}}}
	return c
}

// cutOff cuts the link, and returns when Redis will forget the hold.
func (s *trial) cutOff() time.Duration {
	s.t.Helper()
	s.link.cut()
	pause(200 * time.Millisecond) // for a renewal that was under way
	return s.mustHold().expiry
}

// mustDieBy waits for the end of the first n processes and checks when it was.
func (s *trial) mustDieBy(latest time.Duration, n int) {
	s.t.Helper()
	for i := range n {
		if last := s.awaitDeath(time.Minute, i); last > latest {
			s.t.Errorf("app %d was alive until %.3f, %s too long", i, last.Seconds(), last-latest)
		}
	}
}

// share is how much of the TTL was over when the last of the apps was alive last.
func share(lives []life, end, ttl time.Duration) float64 {
	last := slices.MaxFunc(lives, func(a, b life) int { return int(a.last - b.last) }).last
	return 1 - (end-last).Seconds()/ttl.Seconds()
}
