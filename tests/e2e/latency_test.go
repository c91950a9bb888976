//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// The kubelet looks once a second at which containers have ended. So each way is
// measured many times, at moments that are spread evenly over such a second, and
// each time for a plain pod of the same shape too.
func latencyTimes() int { return samples(15) }

func spread(i int) time.Duration {
	return time.Duration(i) * time.Second / time.Duration(latencyTimes())
}

// The names of figures that are compared.
const (
	figureFloor = "at any moment: a plain pod's last init container ends → first line of its app"
	figureGate  = "at any moment: a pod gives the lock back → first line of the next one's app"

	figureEndFloor  = "at a pod's end: a plain pod's app ends → its sidecar is told"
	figureEnd       = "at a pod's end: an app ends → the lock is the next pod's"
	figureNextFloor = "at a pod's end: that sidecar ends, and a plain pod's init container → first line of its app"
	figureNext      = "at a pod's end: the lock is the next pod's → first line of its app"
)

// How long the gate takes to open, against a plain init container's end. Nothing
// else runs meanwhile.
func TestGateLatency(t *testing.T) {
	t.Run("at any moment", func(t *testing.T) {
		s := begin(t)
		plain := s.aside()
		for i := range latencyTimes() + 1 {
			s.pod(oursName(i), mutex(lockName), apps(app("app", "-lock=early", "-release="+oursName(i))))
			plain.pod(plainName(i), nil, alike(plainAgent(), plainGate(plainName(i))))
		}
		s.eventually(2*time.Minute, "all gates wait", func() bool {
			return s.waiters() == latencyTimes() && len(named("gate", plain.lives())) == latencyTimes()+1
		})
		for i := range latencyTimes() {
			s.releaseAt(i)
			plain.openAt(i)
		}
		mustAddLittle(t, figureGate, figureFloor)
	})
	t.Run("at a pod's end", func(t *testing.T) {
		s := begin(t)
		plain := s.aside()
		for i := range latencyTimes() + 1 {
			run := "-run=" + (500*time.Millisecond + spread(i)).String()
			s.pod(oursName(i), mutex(lockName), never, apps(app("app", run)))
			agent := plainAgent("-then=" + plainName(i+1))
			plain.pod(plainName(i), nil, never, apps(app("app", run)), alike(agent, plainGate(plainName(i))))
		}
		plain.touch(plainName(0))
		within := 2 * time.Minute
		lives := s.awaitLives(within, latencyTimes()+1)
		for i := range latencyTimes() {
			before, after := lives[i], lives[i+1]
			granted := grantedAt(t, after.token)
			figure(handover, figureEnd, "s", (granted - before.at("end", "")).Seconds())
			figure(handover, figureNext, "s", (after.start - granted).Seconds())
		}
		plain.eventually(within, "each plain pod has had its turn", func() bool {
			return len(named("app", plain.lives())) == latencyTimes()+1
		})
		plain.recordEnds()
		mustAddLittle(t, figureNext, figureNextFloor)
	})
}

func oursName(i int) string  { return fmt.Sprintf("ours-%02d", i) }
func plainName(i int) string { return fmt.Sprintf("plain-%02d", i) }

// releaseAt lets the app that started last give its lock back, at the i-th
// moment of a second, and notes how long the next one took.
func (s *trial) releaseAt(i int) {
	s.t.Helper()
	lives := s.awaitLives(startWithin, i+1)
	pause(lives[i].start + 400*time.Millisecond + spread(i) - boot())
	s.touch(lives[i].pod)
	next := s.awaitLives(startWithin, i+2)[i+1]
	released := s.lives()[i].at("release", "")
	if released == 0 || s.lives()[i].at("released", "") == 0 {
		s.t.Fatalf("%s did not give its lock back", lives[i].pod)
	}
	figure(handover, figureGate, "s", (next.start - released).Seconds())
}

// openAt does the same to a plain pod's gate.
func (s *trial) openAt(i int) {
	s.t.Helper()
	pause(400*time.Millisecond + spread(i))
	s.touch(plainName(i))
	var app life
	s.eventually(startWithin, "the plain pod's app has started", func() bool {
		apps := named("app", s.lives())
		if len(apps) == i+1 {
			app = apps[i]
		}
		return len(apps) == i+1
	})
	figure(handover, figureFloor, "s", (app.start - s.lifeOf(app.pod, "gate").at("end", "")).Seconds())
}

// recordEnds notes what the node needed from each plain pod to the next.
func (s *trial) recordEnds() {
	s.t.Helper()
	for i := range latencyTimes() {
		told := s.lifeOf(plainName(i), "agent").at("term", "")
		figure(handover, figureEndFloor, "s", (told - s.lifeOf(plainName(i), "app").at("end", "")).Seconds())
		next := s.lifeOf(plainName(i+1), "app")
		figure(handover, figureNextFloor, "s", (next.start - s.lifeOf(next.pod, "gate").at("end", "")).Seconds())
	}
}

// mustAddLittle compares the means of two figures: each sample stands for its part
// of the second between two of the kubelet's looks, so a median of a few is a matter
// of chance. On a machine that does other work too the means are as well, by up to
// one such look; what the gate aims at is judged where figures are taken.
func mustAddLittle(t *testing.T, ours, floor string) {
	t.Helper()
	limit := 1.0
	if measuring() {
		limit = 0.3
	}
	gate, plain := mean(figureValues(ours)), mean(figureValues(floor))
	t.Logf("ours %.3f s, a plain pod %.3f s", gate, plain)
	if over := gate - plain; over > limit {
		t.Errorf("the gate adds %.3f s to a plain pod's %.3f s, want %.1f s at most", over, plain, limit)
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// named is the lives of the processes of that name.
func named(name string, lives []life) []life {
	var found []life
	for _, l := range lives {
		if l.name == name {
			found = append(found, l)
		}
	}
	return found
}

// lifeOf is the first life of a process in a pod.
func (s *trial) lifeOf(pod, name string) life {
	s.t.Helper()
	for _, l := range s.lives() {
		if l.pod == pod && l.name == name {
			return l
		}
	}
	s.t.Fatalf("no %s of pod %s has started", name, pod)
	return life{}
}
