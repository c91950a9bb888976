package redisstore_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// TestCaseB25AcknowledgedHoldsSurviveTheirPrimary has many locks acquired while the
// primary is killed. What counted with WAIT, the new primary has; what was lost
// without is told in the log (redisson#2669).
func TestCaseB25AcknowledgedHoldsSurviveTheirPrimary(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t, "min-replicas-to-write 1", "min-replicas-max-lag 3")
	enough := make(chan struct{})
	var once sync.Once
	var workers sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[int][]string{} // keys, by WAIT
	for i := range 8 {
		wait := i % 2
		workers.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("orders/%d-%d", i, n)
				if !acquireOnce(t, redisstore.Options{URL: s.URL(), Wait: wait, TTL: failOverTTL, Resource: name}) {
					return
				}
				mu.Lock()
				acknowledged[wait] = append(acknowledged[wait], "lock:{"+name+"}")
				if len(acknowledged[1]) >= 50 {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	s.Servers[0].Kill()
	workers.Wait()
	var next *redistest.Server
	within(t, "an election", func() bool { next = promoted(s.Servers[1:]); return next != nil })
	lost := map[int]int{}
	for wait, keys := range acknowledged {
		for _, key := range keys {
			if next.Do(t, "EXISTS", key) == "0" {
				lost[wait]++
			}
		}
	}
	t.Logf("lost without WAIT: %d of %d; with WAIT: %d of %d", lost[0], len(acknowledged[0]), lost[1], len(acknowledged[1]))
	if lost[1] > 0 {
		t.Errorf("%d of %d holds that replicas had are lost", lost[1], len(acknowledged[1]))
	}
}

// acquireOnce tells whether a new lock was granted; a failure is the primary's end.
func acquireOnce(t *testing.T, o redisstore.Options) bool {
	o.Kind = agentenv.Mutex
	store, err := redisstore.Open(o)
	if err != nil {
		t.Error(err)
		return false
	}
	defer func() { _ = store.Close() }()
	c := claim("a", 1)
	c.TTL = o.TTL
	a, err := store.Acquire(t.Context(), c)
	return err == nil && a.Granted
}
