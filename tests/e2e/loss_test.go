//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// When Redis is silent, the app is dead before nine tenths of the TTL are over,
// whatever it thinks of TERM. Once Redis is back the pod goes on, with a greater
// token, and says why it was stopped.
//
// That is promised for a kubelet that is free to act. So the pods lose their locks
// one after another, and a plain pod of the same apps is stopped together with
// each, to tell what the kubelet needs.
func TestCaseB06LossStopsTheAppInTime(t *testing.T) {
	stubborn := func(name string) corev1.Container { return app(name, "-on-term=ignore") }
	family := app("app")
	family.Command = []string{"sh", "-c", "/bin/app -name=child & /bin/app -name=other & wait"}
	var turn atomic.Int64
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
			t.Parallel()
			pause(time.Duration(turn.Add(1)-1) * between)
			s := begin(t)
			plain := s.aside()
			plain.pod("plain", nil, append(slices.Clone(tc.pod), alike(plainAgent("-until=stop", "-exit=87"), openGate()))...)
			pod := s.pod("pod", mutex(lockName, "ttl", tc.ttl), tc.pod...)
			s.awaitLives(startWithin, tc.apps)
			plain.awaitLives(startWithin, tc.apps+plainHelpers)
			first := s.mustHold()

			end := s.cutOff()
			told := s.awaitTold(end, tc.apps)
			plain.touch("stop")
			needed := plain.awaitStopped("plain")
			for i := range tc.apps {
				s.awaitDeath(time.Minute, i)
			}
			s.mustStopInTime(pod, end, told, s.lives()[:tc.apps], needed)
			ttl, _ := time.ParseDuration(tc.ttl)
			figure(loss, name, "", share(s.lives(), end, ttl))
			s.mustShow("pod", atTheGateAgain)
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
			s.mustTellOfLoss("pod", first)
		})
	}
}

// between is the time from one pod's loss to the next one's: longer than the
// kubelet needs to stop a pod of three containers.
const between = 9 * time.Second

// awaitTold waits until the file held is gone for the first n processes, and says
// when the last of them saw so.
func (s *trial) awaitTold(end time.Duration, n int) (told time.Duration) {
	s.t.Helper()
	s.eventually(end-boot()+startWithin, "the file held is gone", func() bool {
		for _, l := range s.lives()[:n] {
			gone := l.at("held", "-")
			if gone == 0 {
				return s.allDead(n)
			}
			told = max(told, gone)
		}
		return true
	})
	return told
}

func (s *trial) allDead(n int) bool {
	s.t.Helper()
	for i := range n {
		if !s.dead(i) {
			return false
		}
	}
	return true
}

// awaitStopped waits for the end of a plain pod's apps, and keeps its sidecar from
// ending again and again.
func (s *trial) awaitStopped(pod string) (needed time.Duration) {
	s.t.Helper()
	s.eventually(time.Minute, pod+" has been stopped", func() bool {
		var done bool
		needed, done = s.stopped(pod)
		return done
	})
	s.remove("stop")
	return needed
}

// mustStopInTime checks the end of a pod's apps, and of what they could believe. How long a plain pod's kubelet needed tells whether this one was free.
func (s *trial) mustStopInTime(pod *corev1.Pod, end, told time.Duration, apps []life, plain time.Duration) {
	s.t.Helper()
	ttl, margin := timing(pod)
	const looks = 500 * time.Millisecond // of an app that is not the only process of its node
	if late := told - (end - margin); late > looks {
		s.t.Errorf("the file held was there %s after the end of the hold less its margin, want %s at most", late, looks)
	}
	latest := end - ttl/10
	if forKubelet := margin - ttl/10; plain > forKubelet {
		s.t.Logf("the kubelet is not free: it needed %s for a plain pod, and the margin has %s for it", plain, forKubelet)
		latest = end - margin + plain + time.Second // the two pods are not seen at the same look
	}
	for _, app := range apps {
		if app.last > latest {
			s.t.Errorf("%s of %s was alive until %.3f, %s too long", app.name, app.pod, app.last.Seconds(), app.last-latest)
		}
	}
}

// timing is what the pod's agent is told of its TTL and margin.
func timing(pod *corev1.Pod) (ttl, margin time.Duration) {
	ttl = agentenv.Default().TTL
	for _, c := range pod.Spec.InitContainers {
		for _, v := range c.Env {
			switch v.Name {
			case agentenv.Prefix + "TTL":
				ttl, _ = time.ParseDuration(v.Value)
			case agentenv.Prefix + "MARGIN":
				margin, _ = time.ParseDuration(v.Value)
			}
		}
	}
	return ttl, margin
}

// mustTellOfLoss checks what the app of a pod can read of the hold it had before.
func (s *trial) mustTellOfLoss(pod string, lost hold) {
	s.t.Helper()
	var state struct {
		LastLoss struct {
			Reason string
			Token  int64
		}
	}
	text := s.inside(pod, "cat", "/var/run/holdfast/state.json")
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		s.t.Fatalf("state.json: %v in %q", err, text)
	}
	if got := state.LastLoss; got.Reason != "expired" || got.Token != lost.token {
		s.t.Errorf("lastLoss is %+v, want reason expired, token %d", got, lost.token)
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
