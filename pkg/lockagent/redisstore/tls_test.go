package redisstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/redistest"
)

func TestCertificatesThatAreNotAccepted(t *testing.T) {
	ca, other := redistest.NewAuthority(t), redistest.NewAuthority(t)
	cert, key := ca.Issue(t, "agent.test")
	otherCert, otherKey := other.Issue(t, "agent.test")
	r := redistest.Start(t, append(ca.ServerConfig(t), "tls-auth-clients yes")...)
	nonsense := filepath.Join(t.TempDir(), "ca.crt")
	write(t, nonsense, "no PEM")
	good := redisstore.Options{URL: "rediss://" + r.Addr, CAFile: ca.CAFile, CertFile: cert, KeyFile: key}
	take(t, open(t, good), claim("a", 1)) // by the address' own name, which is its IP

	for name, change := range map[string]func(*redisstore.Options){
		"the server's is of another CA":   func(o *redisstore.Options) { o.CAFile = other.CAFile },
		"there is no CA but the system's": func(o *redisstore.Options) { o.CAFile = nonsense + "x" },
		"the CA file has none":            func(o *redisstore.Options) { o.CAFile = nonsense },
		"the server's has another name":   func(o *redisstore.Options) { o.URL += "?server-name=elsewhere.test" },
		"the agent has none":              func(o *redisstore.Options) { o.CertFile = "" },
		"the agent's is of another CA":    func(o *redisstore.Options) { o.CertFile, o.KeyFile = otherCert, otherKey },
		"the agent's key is not its own":  func(o *redisstore.Options) { o.KeyFile = otherKey },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			change(&o)
			store := open(t, o)
			within(t, "code tls", func() bool { // what the server says may get lost when it ends the connection
				_, err := store.Acquire(t.Context(), claim("a", 1))
				return codeOf(err) == lockagent.CodeTLS
			})
		})
	}
	t.Run("the agent does not speak TLS", func(t *testing.T) {
		failsWith(t, open(t, redisstore.Options{URL: "redis://" + r.Addr}), lockagent.CodeUnreachable)
	})
}

// A Secret whose CA, user and password change is read at the next connection, and
// the hold does not mind; nor does it mind that the old password is refused at once.
func TestRotatedSecretKeepsTheHold(t *testing.T) {
	ca, next := redistest.NewAuthority(t), redistest.NewAuthority(t)
	r := redistest.Start(t, append(ca.ServerConfig(t), "user agent on >old ~* &* +@all")...)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write(t, file("username"), "agent")
	write(t, file("password"), "old")
	write(t, file("ca.crt"), read(t, ca.CAFile))
	store := open(t, redisstore.Options{
		URL: "rediss://" + r.Addr, CAFile: file("ca.crt"), UsernameFile: file("username"), PasswordFile: file("password"),
	})
	token := take(t, store, claim("a", 1))
	held := func(when string) {
		t.Helper()
		within(t, "a renewal "+when, func() bool { // after two failures the pool connects once a second only
			got, err := store.Renew(t.Context(), claim("a", 1))
			if err == nil && (got.Outcome != lockagent.Held || got.Token != token) {
				t.Fatalf("%s the renewal gives %+v, want token %d held", when, got, token)
			}
			return err == nil
		})
	}

	endConnections := func() { // which a TLS connection shows only when it is used
		r.Do(t, "CLIENT", "KILL", "USER", "agent")
		_, _ = store.Renew(t.Context(), claim("a", 1))
	}

	r.Do(t, "ACL", "SETUSER", "agent", "<old", ">new")
	held("on the old connection")
	endConnections()
	failsWith(t, store, lockagent.CodeWrongPassword)
	write(t, file("password"), "new")
	held("with the new password")

	cert, key := next.Issue(t, "redis.test")
	r.Do(t, "CONFIG", "SET", "tls-ca-cert-file", next.CAFile, "tls-cert-file", cert, "tls-key-file", key)
	held("on the old connection")
	endConnections()
	failsWith(t, store, lockagent.CodeTLS)
	write(t, file("ca.crt"), read(t, ca.CAFile)+read(t, next.CAFile)) // both, while some servers have the old one
	held("with both CAs")
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
