package redisstore_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

func TestLoginOfSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t, "user agent on >redis-secret ~* &* +@all")
	for _, w := range s.Watchers {
		w.Do(t, "ACL", "SETUSER", "watcher", "on", ">"+secret, "+sentinel|get-master-addr-by-name")
		w.Do(t, "ACL", "SETUSER", "default", "off") // who is connected stays so
	}
	dir := t.TempDir()
	file := func(name, content string) string {
		name = filepath.Join(dir, name)
		write(t, name, content)
		return name
	}
	files := redisstore.Options{
		URL:          s.URL(),
		UsernameFile: file("username", "agent"), PasswordFile: file("password", "redis-secret"),
		SentinelUsernameFile: file("sentinel-username", "watcher"), SentinelPasswordFile: file("sentinel-password", secret),
	}
	take(t, open(t, files), claim("a", 1))

	url := files
	url.SentinelUsernameFile, url.SentinelPasswordFile = filepath.Join(dir, "none"), filepath.Join(dir, "none")
	url.URL = strings.Replace(s.URL(), "://", "://watcher:"+secret+"@", 1)
	take(t, open(t, url), claim("a", 1))

	wrong := files
	wrong.SentinelPasswordFile = file("wrong", secret+"x")
	failsWith(t, open(t, wrong), lockagent.CodeWrongPassword)
}

// One Sentinel that is gone and one that is frozen cost time, not the lock.
func TestSentinelsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	s.Watchers[0].Kill()
	if err := s.Watchers[1].Freeze(); err != nil {
		t.Fatal(err)
	}
	store := open(t, redisstore.Options{URL: s.URL()})
	take(t, store, claim("a", 1))

	_, err := open(t, redisstore.Options{URL: strings.Replace(s.URL(), "/"+redistest.Master, "/other", 1), TTL: failOverTTL / 10}).
		Acquire(t.Context(), claim("a", 1))
	if err == nil || !strings.Contains(err.Error(), `no primary of the name "other"`) {
		t.Errorf("got %v, want it to say that the name is not known", err)
	}
}
