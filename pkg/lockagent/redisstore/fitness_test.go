package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

func TestServersThatAreNotFit(t *testing.T) {
	const evicting = "maxmemory-policy allkeys-lru"
	for name, tc := range map[string]struct {
		config   []string
		change   func(*redisstore.Options)
		wantCode lockagent.Code   // of the acquisition
		wantWarn []lockagent.Code // afterwards
	}{
		"as it should be":                    {},
		"memory that ends in an error":       {config: []string{"maxmemory 100mb"}},
		"memory that ends in evictions":      {config: []string{evicting, "maxmemory 100mb"}, wantCode: lockagent.CodeUnfit},
		"evictions that are allowed":         {config: []string{evicting, "maxmemory 100mb"}, change: func(o *redisstore.Options) { o.AllowEviction = true }, wantWarn: []lockagent.Code{lockagent.CodeEviction}},
		"evictions, once memory has an end":  {config: []string{evicting}, wantWarn: []lockagent.Code{lockagent.CodeEviction}},
		"a user who may not ask":             {config: []string{"user agent on >" + secret + " ~* &* +@all -info"}, change: asAgent, wantWarn: []lockagent.Code{lockagent.CodeUnchecked}},
		"a user who may not do all":          {config: []string{"user agent on >" + secret + " ~* &* +@all -zmscore"}, change: asAgent, wantCode: lockagent.CodeNoPermission},
		"a user who may not use our keys":    {config: []string{"user agent on >" + secret + " ~other* &* +@all"}, change: asAgent, wantCode: lockagent.CodeNoPermission},
		"a user who may not publish":         {config: []string{"user agent on >" + secret + " ~* resetchannels +@all"}, change: asAgent, wantCode: lockagent.CodeNoPermission},
		"a user who may not wait, and must":  {config: []string{"user agent on >" + secret + " ~* &* +@all -wait"}, change: func(o *redisstore.Options) { asAgent(o); o.Wait = 1 }, wantCode: lockagent.CodeNoPermission},
		"a user who may not wait, nor needs": {config: []string{"user agent on >" + secret + " ~* &* +@all -wait"}, change: asAgent},
	} {
		t.Run(name, func(t *testing.T) {
			r := redistest.Start(t, tc.config...)
			o := redisstore.Options{URL: r.URL()}
			if tc.change != nil {
				tc.change(&o)
			}
			store := open(t, o)
			_, err := store.Acquire(t.Context(), claim("a", 1))
			if got := codeOf(err); got != tc.wantCode {
				t.Errorf("acquire fails with code %q, want %q: %v", got, tc.wantCode, err)
			}
			if diff := cmp.Diff(tc.wantWarn, warnings(store)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if got := r.Do(t, "DBSIZE"); err != nil && got != "0" {
				t.Errorf("%s keys are left of a refused acquisition", got)
			}
		})
	}
}

// asAgent logs in as that user.
func asAgent(o *redisstore.Options) {
	o.URL = strings.Replace(o.URL, "redis://", "redis://agent:"+secret+"@", 1)
}

func warnings(store *redisstore.Store) []lockagent.Code {
	var codes []lockagent.Code
	for _, w := range store.Warnings() {
		codes = append(codes, w.Code)
	}
	return codes
}

func TestPermissionsThatLackAreNamed(t *testing.T) {
	r := redistest.Start(t, "user agent on >"+secret+" ~* &* +@all -zmscore -hset")
	o := redisstore.Options{URL: r.URL()}
	asAgent(&o)
	_, err := open(t, o).Acquire(t.Context(), claim("a", 1))
	var failed *lockagent.StoreError
	if !errors.As(err, &failed) || !strings.Contains(failed.Error(), "ZMSCORE, HSET") {
		t.Errorf("got %v, want it to name both commands", err)
	}
}

// What has been seen of one server says nothing about the next one.
func TestServerIsLookedAtAgainAfterAReconnection(t *testing.T) {
	r := redistest.Start(t, "maxmemory 100mb")
	store := open(t, redisstore.Options{URL: r.URL()})
	take(t, store, claim("a", 1))
	release(t, store, claim("a", 1))
	r.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	take(t, store, claim("b", 1))
	r.Do(t, "CLIENT", "KILL", "TYPE", "normal")
	if got := renew(t, store, claim("b", 1)); got.Outcome != lockagent.Held {
		t.Errorf("the renewal gives %q: what is held is kept", got.Outcome)
	}
	release(t, store, claim("b", 1))
	_, err := store.Acquire(t.Context(), claim("c", 1))
	if codeOf(err) != lockagent.CodeUnfit {
		t.Errorf("got %v, want code %q", err, lockagent.CodeUnfit)
	}
	r.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	take(t, store, claim("c", 1))
}

func TestReplicasWithoutAMinimumAreAWarning(t *testing.T) {
	r := redistest.Start(t)
	replica(t, r)
	store := open(t, redisstore.Options{URL: r.URL()})
	take(t, store, claim("a", 1))
	if diff := cmp.Diff([]lockagent.Code{lockagent.CodeMinReplicas}, warnings(store)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	r.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	next := open(t, redisstore.Options{URL: r.URL()})
	take(t, next, claim("a", 1))
	if got := warnings(next); got != nil {
		t.Errorf("warnings %q, want none", got)
	}
}
