package redisstore_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

const secret = "correct-horse"

// open makes a Store from options that only lack the lock.
func open(t *testing.T, o redisstore.Options) *redisstore.Store {
	t.Helper()
	o.Kind, o.Resource = agentenv.Mutex, resource
	if o.TTL == 0 {
		o.TTL = ttl
	}
	store, err := redisstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// failsWith makes each kind of call and expects the code of all.
func failsWith(t *testing.T, store *redisstore.Store, want lockagent.Code) {
	t.Helper()
	c := claim("a", 1)
	_, acquire := store.Acquire(t.Context(), c)
	_, renew := store.Renew(t.Context(), c)
	_, shorten := store.Shorten(t.Context(), c, time.Second)
	_, release := store.Release(t.Context(), c)
	_, listen := store.Listen(t.Context(), c)
	for op, err := range map[string]error{"acquire": acquire, "renew": renew, "shorten": shorten, "release": release, "listen": listen} {
		var failed *lockagent.StoreError
		if !errors.As(err, &failed) {
			t.Errorf("%s: got %v, want a StoreError", op, err)
			continue
		}
		if failed.Code != want || failed.Op != op || failed.Resource != resource {
			t.Errorf("got %s of %q: code %q, want %q of %s: %v", failed.Op, failed.Resource, failed.Code, want, op, failed)
		}
		if strings.Contains(failed.Error(), secret) {
			t.Errorf("the password is in the error: %v", failed)
		}
	}
}

func TestErrorsOfRedisHaveCodes(t *testing.T) {
	tests := map[string]lockagent.Code{
		"WRONGPASS invalid username-password pair or user is disabled.":               lockagent.CodeWrongPassword,
		"NOAUTH Authentication required.":                                             lockagent.CodeWrongPassword,
		"NOPERM this user has no permissions to run the 'evalsha' command":            lockagent.CodeNoPermission,
		"ERR The user executing the script can't run this command or subcommand":      lockagent.CodeNoPermission,
		"ERR ACL failure in script: User x has no permissions to run the 'get'":       lockagent.CodeNoPermission,
		"CLUSTERDOWN Hash slot not served":                                            lockagent.CodeNotWritable,
		"OOM command not allowed when used memory > 'maxmemory'.":                     lockagent.CodeOutOfMemory,
		"ERR Error running script (call to f_1): @user_script:12: -OOM command not":   lockagent.CodeOutOfMemory,
		"READONLY You can't write against a read only replica.":                       lockagent.CodeNotWritable,
		"LOADING Redis is loading the dataset in memory":                              lockagent.CodeNotWritable,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'.":   lockagent.CodeNotWritable,
		"NOREPLICAS Not enough good replicas to write.":                               lockagent.CodeNotWritable,
		"MISCONF Redis is configured to save RDB snapshots, but it's unable to":       lockagent.CodeNotWritable,
		"ERR Error running script: @user_script:9: WRONGTYPE Operation against a key": lockagent.CodeWrongType,
		"ERR something new": lockagent.CodeUnexpected,
	}
	for message, want := range tests {
		t.Run(message, func(t *testing.T) {
			m := miniredis.RunT(t)
			store := open(t, redisstore.Options{URL: "redis://" + m.Addr()})
			m.SetError(message)
			failsWith(t, store, want)
		})
	}
}

func TestRedisThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	failsWith(t, open(t, redisstore.Options{URL: "redis://" + addr}), lockagent.CodeUnreachable)
	failsWith(t, open(t, redisstore.Options{URL: "unix://" + t.TempDir() + "/none.sock"}), lockagent.CodeUnreachable)
}

func TestRedisThatClosesTheConnection(t *testing.T) {
	addr := serve(t, func(net.Conn) {})
	failsWith(t, open(t, redisstore.Options{URL: "redis://" + addr}), lockagent.CodeUnreachable)
}

func TestFrozenRedisTimesOutByTheDeadlineAndByASixthOfTheTTL(t *testing.T) {
	r := redistest.Start(t)
	store := open(t, redisstore.Options{URL: r.URL()})
	take(t, store, claim("a", 1))
	if err := r.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Thaw() })

	// With the default time-out of 5 s this would not return within the test's own.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := store.Renew(ctx, claim("a", 1))
	var failed *lockagent.StoreError
	if !errors.As(err, &failed) || failed.Code != lockagent.CodeTimeout {
		t.Errorf("got %v, want code %q", err, lockagent.CodeTimeout)
	}
	failsWith(t, open(t, redisstore.Options{URL: r.URL(), TTL: 300 * time.Millisecond}), lockagent.CodeTimeout)

	if err := r.Thaw(); err != nil {
		t.Fatal(err)
	}
	if got := renew(t, store, claim("a", 1)).Outcome; got != lockagent.Held {
		t.Errorf("after the freeze the renewal gives %q", got)
	}
}

func TestLogins(t *testing.T) {
	r := redistest.Start(t, "requirepass "+secret,
		"user limited on >"+secret+" ~* &* +@all -evalsha -eval -subscribe",
		"user keyless on >"+secret+" ~other:* &* +@all")
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	bad := map[string]struct {
		options  redisstore.Options
		wantCode lockagent.Code
	}{
		"no password":                  {redisstore.Options{URL: r.URL()}, lockagent.CodeWrongPassword},
		"wrong password":               {redisstore.Options{URL: r.URL(), PasswordFile: file(secret + "x")}, lockagent.CodeWrongPassword},
		"unknown user":                 {redisstore.Options{URL: r.URL(), UsernameFile: file("nobody"), PasswordFile: file(secret)}, lockagent.CodeWrongPassword},
		"a user without the commands":  {redisstore.Options{URL: r.URL(), UsernameFile: file("limited"), PasswordFile: file(secret)}, lockagent.CodeNoPermission},
		"a secret without a password":  {redisstore.Options{URL: r.URL(), PasswordFile: filepath.Join(t.TempDir(), "none")}, lockagent.CodeWrongPassword},
		"an unreadable password":       {redisstore.Options{URL: r.URL(), PasswordFile: t.TempDir()}, lockagent.CodeUnexpected},
		"an unreadable username, unix": {redisstore.Options{URL: r.SocketURL(), UsernameFile: t.TempDir(), PasswordFile: file(secret)}, lockagent.CodeUnexpected},
	}
	for name, tc := range bad {
		t.Run(name, func(t *testing.T) { failsWith(t, open(t, tc.options), tc.wantCode) })
	}
	good := map[string]redisstore.Options{
		"password file, with its newline": {URL: r.URL(), PasswordFile: file(secret + "\n")},
		"both files":                      {URL: r.URL(), UsernameFile: file("default\r\n"), PasswordFile: file(secret)},
		"files win over the url":          {URL: "redis://x:y@" + r.Addr, UsernameFile: file("default"), PasswordFile: file(secret)},
		"a secret without them, url":      {URL: "redis://:" + secret + "@" + r.Addr, UsernameFile: filepath.Join(t.TempDir(), "none"), PasswordFile: filepath.Join(t.TempDir(), "none")},
		"in the url":                      {URL: "redis://:" + secret + "@" + r.Addr + "/3"},
		"url file, unix socket":           {URLFile: file(r.SocketURL() + "?db=2\n"), PasswordFile: file(secret)},
	}
	for name, options := range good {
		t.Run(name, func(t *testing.T) {
			store := open(t, options)
			take(t, store, claim("a", 1))
			release(t, store, claim("a", 1))
		})
	}
	t.Run("CaseB27: a user who may not touch the keys is told so, not that the lock is lost", func(t *testing.T) {
		store := open(t, redisstore.Options{URL: r.URL(), UsernameFile: file("keyless"), PasswordFile: file(secret)})
		_, err := store.Renew(t.Context(), claim("a", 1))
		var failed *lockagent.StoreError
		if !errors.As(err, &failed) || failed.Code != lockagent.CodeNoPermission {
			t.Errorf("got %v, want code %q", err, lockagent.CodeNoPermission)
		}
	})
}

func TestPasswordIsReadAgainForEachConnection(t *testing.T) {
	r := redistest.Start(t, "requirepass "+secret)
	name := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(name, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	store := open(t, redisstore.Options{URL: r.URL(), PasswordFile: name})
	failsWith(t, store, lockagent.CodeWrongPassword)
	write(secret)
	take(t, store, claim("a", 1))
}

func TestScriptsAreLoadedAgainWhenRedisHasForgottenThem(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		store := s.open(t, agentenv.Mutex, resource)
		forget := func() {
			t.Helper()
			if err := s.raw.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		take(t, store, claim("a", 1))
		forget()
		if got := renew(t, store, claim("a", 1)).Outcome; got != lockagent.Held {
			t.Errorf("the renewal gives %q", got)
		}
		forget()
		if got := acquire(t, store, claim("b", 1)); got.Position != 1 {
			t.Errorf("got %+v, want to wait first", got)
		}
		forget()
		if !release(t, store, claim("a", 1)) {
			t.Error("there was nothing to release")
		}
	})
}
