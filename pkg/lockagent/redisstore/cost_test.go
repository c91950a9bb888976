package redisstore_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

var calls = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)

// commands counts what the server has run, also inside scripts, without what
// this test asks it.
func commands(t *testing.T, raw *redis.Client) map[string]int {
	t.Helper()
	info, err := raw.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, m := range calls.FindAllStringSubmatch(info, -1) {
		if m[1] == "info" {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		counts[m[1]] = n
		counts["all"] += n
	}
	return counts
}

// cost is the number of commands that do causes.
func cost(t *testing.T, s server, do func()) map[string]int {
	t.Helper()
	before := commands(t, s.raw)
	do()
	after := commands(t, s.raw)
	for name, n := range before {
		if after[name] -= n; after[name] == 0 {
			delete(after, name)
		}
	}
	return after
}

// handOff has a release, an offer and its answer happen with so many waiters,
// and returns what they cost.
func handOff(t *testing.T, kind agentenv.Kind, waiters int) map[string]int {
	s := startReal(t)
	store := s.open(t, kind, resource)
	permits := map[agentenv.Kind]int{agentenv.Mutex: 1, agentenv.Semaphore: 3}[kind]
	for i := range permits - 1 {
		take(t, store, claim(fmt.Sprintf("other-%d", i), permits))
	}
	take(t, store, claim("holder", permits))
	first, second := claim("waiter-0", permits), claim("waiter-1", permits)
	wakes, next := listen(t, store, first), listen(t, store, second)
	for i := range waiters {
		c := claim(fmt.Sprintf("waiter-%d", i), permits)
		c.Pod, c.Namespace, c.Node = c.Owner, "orders", "node-1"
		acquire(t, store, c)
	}
	renew(t, store, claim("holder", permits)) // so that the scripts are loaded
	release(t, store, claim("nobody", permits))
	<-wakes
	return cost(t, s, func() {
		release(t, store, claim("holder", permits))
		if w := <-wakes; w.Kind != lockagent.WakeOffer {
			t.Errorf("the first hears %+v", w)
		}
		if w := <-next; w.Kind != lockagent.WakeNext {
			t.Errorf("the second hears %+v", w)
		}
		if got := renew(t, store, first).Outcome; got != lockagent.Held {
			t.Errorf("the offer's answer gives %q", got)
		}
	})
}

func TestCaseB58HandOffCostsTheSameHoweverManyWait(t *testing.T) {
	for kind, most := range map[agentenv.Kind]int{agentenv.Mutex: 20, agentenv.Semaphore: 30} {
		t.Run(string(kind), func(t *testing.T) {
			few, many := handOff(t, kind, 10), handOff(t, kind, 300)
			t.Logf("a hand-off is %d commands: %v", many["all"], many)
			if few["all"] != many["all"] {
				t.Errorf("%d commands with 10 waiters, %d with 300", few["all"], many["all"])
			}
			if many["all"] > most {
				t.Errorf("%d commands, want at most %d: %v", many["all"], most, many)
			}
			if many["publish"] != 2 || many["evalsha"] != 2 {
				t.Errorf("%d messages in %d scripts, want 2 in 2", many["publish"], many["evalsha"])
			}
		})
	}
}

// A waiter at rest calls once in a third of its TTL, and a holder too. What the
// Store adds to these calls, and does between them, is nothing.
func TestWaitingAndHoldingCostOneScriptACall(t *testing.T) {
	s := startReal(t)
	holder, waiter := s.open(t, agentenv.Mutex, resource), s.open(t, agentenv.Mutex, resource)
	take(t, holder, claim("a", 1))
	renew(t, holder, claim("a", 1))
	wakes := listen(t, waiter, claim("b", 1))
	acquire(t, waiter, claim("b", 1))

	got := cost(t, s, func() {
		acquire(t, waiter, claim("b", 1))
		renew(t, holder, claim("a", 1))
	})
	t.Logf("a heartbeat and a renewal are %d commands: %v", got["all"], got)
	if got["evalsha"] != 2 || got["publish"] != 0 || got["ping"] != 0 || got["hello"] != 0 {
		t.Errorf("got %v, want two scripts and no message or connection", got)
	}
	if len(wakes) > 0 {
		t.Errorf("the waiter is woken: %+v", <-wakes)
	}
	clients, err := s.raw.Info(t.Context(), "clients").Result()
	if err != nil {
		t.Fatal(err)
	}
	// One for each Store's calls, one for the subscription, one of the test.
	if want := regexp.MustCompile(`connected_clients:4\b`); !want.MatchString(clients) {
		t.Errorf("got %s, want four connections", clients)
	}
}
