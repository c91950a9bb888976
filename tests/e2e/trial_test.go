//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

// lockName is the one lock of most trials.
const lockName = "lock"

// trial is one test's world: a namespace, a Redis, the link between them and
// the journals of its apps. At its end the journals are looked through for more
// pods alive at one time than the lock allows, whatever else the test is about.
type trial struct {
	t         *testing.T
	namespace string
	server    *redistest.Server
	db        *redis.Client
	link      *link
	journal   string // folder
}

// begin makes a trial whose namespace has further labels.
func begin(t *testing.T, labels ...string) *trial {
	t.Helper()
	return beginAt(t, redistest.Start(t), labels...)
}

// beginAt makes a trial at a Redis that others may use too.
func beginAt(t *testing.T, server *redistest.Server, labels ...string) *trial {
	t.Helper()
	s := &trial{t: t, server: server}
	s.db = redis.NewClient(&redis.Options{Network: "unix", Addr: s.server.Socket})
	t.Cleanup(func() { _ = s.db.Close() })
	s.link = newLink(t, shared.host, s.server.Socket)
	s.namespace = s.newNamespace("", labels...)
	s.journal = filepath.Join(shared.journals, s.namespace)
	if err := os.MkdirAll(s.journal, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.journal, 0o777); err != nil { // apps may run as any user
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.journal) })
	t.Cleanup(func() { s.mustExclude(lockName, 1) })
	t.Cleanup(s.explain)
	return s
}

// newNamespace enables Holdfast in a new namespace, named for it or at random,
// and tells it where Redis is.
func (s *trial) newNamespace(name string, labels ...string) string {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{enabledLabel: "true"}}}
	if name == "" {
		namespace.GenerateName = "e2e-"
	}
	for i := 0; i+1 < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	namespaces := shared.CoreV1().Namespaces()
	namespace, err := namespaces.Create(s.t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.end(namespace.Name) })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "holdfast-redis"}, StringData: map[string]string{"url": s.link.url()}}
	if _, err := shared.CoreV1().Secrets(namespace.Name).Create(s.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return namespace.Name
}

// eventually fails the test if done does not become true in time.
func (s *trial) eventually(within time.Duration, what string, done func() bool) {
	s.t.Helper()
	for until := boot() + within; !done(); {
		if boot() >= until {
			s.t.Fatalf("not within %s: %s", within, what)
		}
		pause(pollEvery)
	}
}

// lives reads the journals.
func (s *trial) lives() []life {
	s.t.Helper()
	lives, err := readLives(s.journal)
	if err != nil {
		s.t.Fatal(err)
	}
	return lives
}

// awaitLives waits until n processes of apps have been started.
func (s *trial) awaitLives(within time.Duration, n int) []life {
	s.t.Helper()
	var lives []life
	s.eventually(within, fmt.Sprintf("%d apps have started", n), func() bool {
		lives = s.lives()
		return len(lives) >= n
	})
	return lives
}

// awaitDeath waits for the n-th process to be gone, and says when it was alive last.
func (s *trial) awaitDeath(within time.Duration, n int) time.Duration {
	s.t.Helper()
	s.eventually(within, fmt.Sprintf("app %d has ended", n), func() bool { return s.dead(n) })
	return s.lives()[n].last
}

// dead tells whether the n-th process has not been alive for a while.
func (s *trial) dead(n int) bool { return boot()-s.lives()[n].last > time.Second }

// mustExclude fails the test if more pods than permits have been alive under a
// lock at one time.
func (s *trial) mustExclude(lock string, permits int) {
	lives, err := readLives(s.journal)
	if err != nil {
		s.t.Error(err)
		return
	}
	if pods, at := crowd(lives, lock); pods > permits {
		s.t.Errorf("%d pods were alive under %q at %.3f, and %d may be", pods, lock, at.Seconds(), permits)
		for _, l := range lives {
			s.t.Log(l)
		}
	}
}

// pause is what passes between two looks at the world.
func pause(d time.Duration) { <-time.After(d) }
