package lockagent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
)

// What an agent that starts does with what an earlier one has left.
const (
	keeps = "keeps" // holds, same owner and token
	same  = "same"  // asks again with the same owner
	anew  = "anew"  // asks with a new owner
	ends  = "ends"  // exit 87: the app may run without a hold
)

// The answers of the store, in the order of the tables' columns.
var answers = []struct {
	name string
	make func(*pod)
}{
	{"held", func(*pod) {}},
	{"gone", func(p *pod) { p.server.Forget() }},
	{"taken", func(p *pod) { p.server.Give("orders/etl", "other", time.Hour) }},
	{"silent", func(p *pod) { p.store.Intercept(memstore.Silent) }},
}

// left are the ways in which a process can leave its record.
var left = map[string]func(*pod) *pod{
	"none": func(p *pod) *pod { return p },
	"queued": func(p *pod) *pod {
		p.server.Give("orders/etl", "other", 30*time.Second)
		return p.start().killed()
	},
	"asked, answer lost": func(p *pod) *pod {
		p.store.Intercept(memstore.Deaf)
		return p.start().killed()
	},
	"hold":          func(p *pod) *pod { return p.start().killed() },
	"hold, adopted": func(p *pod) *pod { return p.start().killed().init().start().killed() },
	"hold, in its margin": func(p *pod) *pod {
		next := p.start().killed()
		sleep(23500 * time.Millisecond)
		return next
	},
	"hold, out of time": func(p *pod) *pod {
		next := p.start().killed()
		sleep(30 * time.Second)
		return next
	},
	"hold of another boot": func(p *pod) *pod {
		next := p.start().killed()
		next.machine.bootID = "boot-2"
		return next
	},
	"lost": func(p *pod) *pod {
		p.start().server.Forget()
		p.wantExit(lockagent.ExitLost, 10*time.Second)
		return p.killed()
	},
	"truncated": func(p *pod) *pod {
		next := p.start().killed()
		next.writeRecord(`{"owner":"0b7`)
		return next
	},
	"truncated, and found so": func(p *pod) *pod {
		next := p.start().killed()
		next.writeRecord(`{"owner":"0b7`)
		next.start().wantExit(lockagent.ExitLost, 0)
		return next.killed()
	},
	"empty": func(p *pod) *pod {
		next := p.start().killed()
		next.writeRecord("")
		return next
	},
	"token without owner": func(p *pod) *pod {
		next := p.start().killed()
		next.writeRecord(`{"token":7}`)
		return next
	},
}

func (p *pod) writeRecord(content string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.cfg.StateDir, "record.json"), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// adoption is one way to start.
type adoption struct {
	where  string // "same epoch": the app may run; "new epoch", "no pod": it does not
	onLost agentenv.OnLost
	record string
	want   [4]string // by answer: held, gone, taken, silent
}

func TestAdoption(t *testing.T) {
	tests := []adoption{
		{"same epoch", agentenv.LostStop, "none", [4]string{anew, anew, anew, anew}},
		{"same epoch", agentenv.LostStop, "queued", [4]string{same, same, same, same}},
		{"same epoch", agentenv.LostStop, "hold", [4]string{keeps, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "hold, adopted", [4]string{keeps, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "hold, in its margin", [4]string{ends, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "hold, out of time", [4]string{ends, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "hold of another boot", [4]string{ends, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "lost", [4]string{ends, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "truncated", [4]string{ends, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "truncated, and found so", [4]string{ends, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "empty", [4]string{ends, ends, ends, ends}},
		{"same epoch", agentenv.LostStop, "token without owner", [4]string{ends, ends, ends, ends}},

		{"same epoch", agentenv.LostNotify, "queued", [4]string{same, same, same, same}},
		{"same epoch", agentenv.LostNotify, "hold", [4]string{keeps, anew, anew, anew}},
		{"same epoch", agentenv.LostNotify, "hold, in its margin", [4]string{anew, anew, anew, anew}},
		{"same epoch", agentenv.LostNotify, "hold, out of time", [4]string{anew, anew, anew, anew}},
		{"same epoch", agentenv.LostNotify, "truncated", [4]string{anew, anew, anew, anew}},

		{"new epoch", agentenv.LostStop, "queued", [4]string{same, same, same, same}},
		{"new epoch", agentenv.LostStop, "hold", [4]string{keeps, anew, anew, anew}},
		{"new epoch", agentenv.LostStop, "hold, in its margin", [4]string{keeps, anew, anew, anew}},
		{"new epoch", agentenv.LostStop, "hold, out of time", [4]string{anew, anew, anew, anew}},
		{"new epoch", agentenv.LostStop, "hold of another boot", [4]string{anew, anew, anew, anew}},
		{"new epoch", agentenv.LostStop, "lost", [4]string{anew, anew, anew, anew}},
		{"new epoch", agentenv.LostStop, "truncated", [4]string{ends, ends, ends, ends}}, // of which epoch it was is not known
		{"new epoch", agentenv.LostStop, "truncated, and found so", [4]string{anew, anew, anew, anew}},
		{"new epoch", agentenv.LostNotify, "hold", [4]string{keeps, anew, anew, anew}},

		{"no pod", agentenv.LostStop, "queued", [4]string{same, same, same, same}},
		{"no pod", agentenv.LostStop, "hold", [4]string{keeps, anew, anew, anew}},
		{"no pod", agentenv.LostStop, "hold, in its margin", [4]string{keeps, anew, anew, anew}},
		{"no pod", agentenv.LostStop, "hold, out of time", [4]string{anew, anew, anew, anew}},
		{"no pod", agentenv.LostStop, "lost", [4]string{anew, anew, anew, anew}},
		{"no pod", agentenv.LostStop, "truncated", [4]string{anew, anew, anew, anew}},
	}
	for _, tc := range tests {
		for i, answer := range answers {
			name := fmt.Sprintf("%s/%s/%s/%s", tc.where, tc.onLost, tc.record, answer.name)
			bubble(t, name, func(t *testing.T) {
				p, owners := tc.prepare(t)
				answer.make(p)
				p.start()
				appMayHold := tc.where == "same epoch" && (tc.record == "hold" || tc.record == "hold, adopted")
				if answer.name == "silent" && p.heldFile() != appMayHold {
					t.Errorf("before an answer, file held exists = %t, want %t", p.heldFile(), appMayHold)
				}
				p.wantAdoption(tc.want[i], owners)
			})
		}
	}
}

// prepare is the pod before its next agent starts, and who had or wanted the lock.
func (tc adoption) prepare(t *testing.T) (p *pod, owners []string) {
	p = newPod(t, memstore.NewServer(), func(c *agentenv.Config) {
		c.OnLost = tc.onLost
		if tc.where == "no pod" {
			outside(c)
		}
	})
	p = left[tc.record](p.init())
	owners = p.server.Holders()
	if tc.record == "queued" {
		owners = p.server.Queue()
	}
	if tc.where == "new epoch" {
		p.init()
	}
	return p, owners
}

// wantAdoption waits for what becomes of the start, and sees that the pod gets
// its lock in the end.
func (p *pod) wantAdoption(want string, owners []string) {
	p.t.Helper()
	if want == ends {
		p.wantExit(lockagent.ExitLost, 23500*time.Millisecond)
		p.wantPhase(lockagent.Lost)
		next := p.killed().init().start() // the kubelet restarts the pod in place
		next.server.Drop("other")
		sleep(31 * time.Second) // a hold whose owner is not known any more has to expire
		next.wantPhase(lockagent.Holding)
		return
	}
	sleep(30 * time.Second) // no answer: an adopted hold would have ended by now
	p.wantRunning()
	p.store.Intercept(nil)
	if got := p.state(); want == keeps && (got.State != lockagent.Holding || got.Token != 1) {
		p.t.Errorf("state %s with token %d, want the hold of token 1\n%s", got.State, got.Token, p.log)
	}
	p.server.Drop("other")
	sleep(12 * time.Second)
	if len(owners) > 0 && want == anew {
		sleep(20 * time.Second) // a hold whose owner is not known any more has to expire
	}
	p.wantPhase(lockagent.Holding)
	p.wantRunning()
	holder := p.server.Holders()
	if kept := slices.Equal(holder, owners); kept != (want == keeps || want == same) {
		p.t.Errorf("owner before %v, now %v; want it %s\n%s", owners, holder, want, p.log)
	}
}

// The answer to acquire was lost with the process: the next one gets the very
// same grant.
func TestAdoptionOfAGrantNobodySaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := left["asked, answer lost"](newPod(t, memstore.NewServer()).init()).init().start()
		p.wantPhase(lockagent.Holding)
		if got := p.state().Token; got != 1 {
			t.Errorf("token = %d, want 1", got)
		}
	})
}

// The kubelet's pause before it starts an agent alone again grows: 0, 10, 20 s.
// Before that outlives a hold, the pod is restarted in place, with its hold.
func TestAdoptionRestartsThePodInPlaceWithItsHold(t *testing.T) {
	const minute = time.Minute
	tests := map[string]struct {
		change   func(*agentenv.Config)
		takeover []time.Duration // pauses before each
		want     string
	}{
		"first":                         {change: ttl(30*time.Second, 6*time.Second), takeover: []time.Duration{0}, want: keeps},
		"first, with a short TTL":       {change: ttl(29*time.Second, 6*time.Second), takeover: []time.Duration{0}, want: ends},
		"second within ten minutes":     {change: ttl(30*time.Second, 6*time.Second), takeover: []time.Duration{0, 9 * minute}, want: ends},
		"second, later":                 {change: ttl(30*time.Second, 6*time.Second), takeover: []time.Duration{0, 11 * minute}, want: keeps},
		"second, but the app runs on":   {change: notify, takeover: []time.Duration{0, time.Minute}, want: keeps},
		"short TTL, app runs on":        {change: func(c *agentenv.Config) { c.TTL = 5 * time.Second; notify(c) }, takeover: []time.Duration{0}, want: keeps},
		"third, with pauses in between": {change: ttl(30*time.Second, 6*time.Second), takeover: []time.Duration{0, 11 * minute, 11 * minute}, want: keeps},
	}
	for name, tc := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPod(t, memstore.NewServer(), tc.change).init().start()
			for _, pause := range tc.takeover {
				sleep(pause)
				p = p.killed().start()
			}
			if tc.want == keeps {
				sleep(time.Minute)
				p.wantPhase(lockagent.Holding)
				p.wantMetric("holdfast_adoptions_total", 1)
				return
			}
			p.wantExit(lockagent.ExitLost, 0)
			p.wantMetric("holdfast_losses_total", 0)
			p = p.killed().init().start()
			p.wantPhase(lockagent.Holding)
			if got := p.state(); got.Token != 1 || got.LastLoss != nil {
				t.Errorf("token %d, last loss %v; want 1, none: it was never lost", got.Token, got.LastLoss)
			}
			if p.cfg.TTL < 30*time.Second {
				return
			}
			p = p.killed().start() // the kubelet's pause is gone, and so is the reason to restart
			p.wantPhase(lockagent.Holding)
			p.wantRunning()
		})
	}
}
