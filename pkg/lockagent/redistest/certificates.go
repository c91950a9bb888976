package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for one test.
type Authority struct {
	CAFile string // PEM

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes a CA in a folder of the test.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{dir: tb.TempDir()}
	template := template("test CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	a.CAFile, _ = a.issue(tb, "ca", template)
	return a
}

// Issue makes a certificate for a name and for 127.0.0.1, and returns the files of
// it and of its key.
func (a *Authority) Issue(tb testing.TB, name string) (certFile, keyFile string) {
	tb.Helper()
	template := template(name)
	template.DNSNames, template.IPAddresses = []string{name}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return a.issue(tb, name, template)
}

// ServerConfig is what a server needs to speak TLS only, on its port.
func (a *Authority) ServerConfig(tb testing.TB) []string {
	tb.Helper()
	cert, key := a.Issue(tb, "redis.test")
	return []string{
		"port 0", "tls-port PORT", "tls-cert-file " + cert, "tls-key-file " + key,
		"tls-ca-cert-file " + a.CAFile, "tls-auth-clients no", "tls-replication yes", "tls-cluster yes",
	}
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// issue signs by itself what there is no CA for yet.
func (a *Authority) issue(tb testing.TB, name string, template *x509.Certificate) (certFile, keyFile string) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	if a.cert == nil {
		a.cert, a.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	must(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile
}
