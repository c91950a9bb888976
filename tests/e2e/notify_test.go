//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// With on-lost: notify the app goes on. What says that the lock is held is gone
// before the TTL is over, and comes back with a greater token.
func TestNotifyOnlyTells(t *testing.T) {
	t.Parallel()
	s := begin(t)
	const ttl = 5 * time.Second
	s.pod("pod", mutex(lockName, "ttl", "5s", "on-lost", "notify"))
	s.awaitLives(startWithin, 1)
	first := s.mustHold()
	end := s.cutOff()
	s.eventually(ttl+5*time.Second, "held is gone", func() bool { return s.lives()[0].at("held", "-") != 0 })
	if gone := s.lives()[0].at("held", "-"); gone > end-ttl/10 {
		t.Errorf("held was there until %s before the end of the hold, want %s", end-gone, ttl/10)
	}
	figure(loss, "on-lost: notify (5 s TTL): the file held is gone", "", 1-(end-s.lives()[0].at("held", "-")).Seconds()/ttl.Seconds())
	s.eventually(ttl+5*time.Second, "the lock is free", func() bool { _, held := s.held(); return !held })

	s.link.restore()
	s.eventually(startWithin, "the lock is held again", func() bool { _, held := s.held(); return held })
	second := s.mustHold()
	if second.token <= first.token {
		t.Errorf("the second hold has token %d, want more than %d", second.token, first.token)
	}
	s.eventually(5*time.Second, "held is back", func() bool { return s.lives()[0].at("held", second.tokenText()) != 0 })
	if n := len(s.lives()); n != 1 {
		t.Errorf("the app was started %d times, want once", n)
	}
}

// With gate: none all replicas start, once their agent can be asked, and are
// ready; one of them holds.
func TestStandbyReplicasAreReady(t *testing.T) {
	t.Parallel()
	s := begin(t)
	asking := app("app")
	asking.Command = []string{"sh", "-c", // its apps may run side by side, so they are under another lock
		`printf 'GET /v1/held HTTP/1.0\r\n\r\n' | nc 127.0.0.1 8650 >/journal/answer-$HOSTNAME; exec /bin/app -lock=standby`}
	for _, name := range []string{"one", "two", "three"} {
		s.pod(name, mutex(lockName, "gate", "none"), apps(asking))
	}
	for _, name := range []string{"one", "two", "three"} {
		s.awaitReady(name)
	}
	s.awaitWaiters(2)
	holders := 0
	s.eventually(startWithin, "each app has looked", func() bool { return len(s.lives()) == 3 })
	h := s.mustHold()
	pause(time.Second)
	for _, name := range []string{"one", "two", "three"} {
		answer, err := os.ReadFile(filepath.Join(s.journal, "answer-"+name))
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.") {
			t.Errorf("the first question of %s got %q, %v: want the API's answer", name, answer, err)
		}
	}
	for _, l := range s.lives() {
		if l.token == h.tokenText() || l.at("held", h.tokenText()) != 0 {
			holders++
		}
	}
	if holders != 1 {
		t.Errorf("%d apps have seen the token of the holder, want 1", holders)
	}
}
