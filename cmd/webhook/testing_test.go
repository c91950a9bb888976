package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const settingsText = `
apiVersion: config.holdfast.dev/v1alpha1
kind: WebhookSettings
image: registry.example/holdfast-agent:v1
`

// writeFile writes a file of a test's own.
func writeFile(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeCertificate puts a new certificate for 127.0.0.1, signed by itself, into
// dir, and answers with what trusts it.
func writeCertificate(t *testing.T, dir string, serial int64, from, to time.Time) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	// The key first: a reader in between finds a pair that does not match, and
	// keeps what it has.
	writeFile(t, filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	writeFile(t, filepath.Join(dir, "tls.crt"), certPEM)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return pool
}

// program is a running holdfast-webhook.
type program struct {
	webhook, metrics, health string // addresses
	trust                    *x509.CertPool
	dir                      string // its files
	stop                     context.CancelFunc
	exit                     <-chan int
}

// start runs the program on ports of its own, with a certificate that is valid
// from and to those times from now.
func start(t *testing.T, from, to time.Duration) *program {
	t.Helper()
	p := &program{dir: t.TempDir()}
	now := time.Now()
	p.trust = writeCertificate(t, p.dir, 1, now.Add(from), now.Add(to))
	config := filepath.Join(p.dir, "settings.yaml")
	writeFile(t, config, []byte(settingsText))

	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	exit := make(chan int, 1)
	p.stop, p.exit = stop, exit
	go func() {
		exit <- run(ctx, []string{
			"--config", config, "--cert-dir", p.dir,
			"--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0",
		}, io.Discard, write)
		_ = write.Close()
	}()
	p.readAddresses(t, read)
	t.Cleanup(stop)
	return p
}

// readAddresses takes from the log where the program listens, and lets the rest
// of the log go.
func (p *program) readAddresses(t *testing.T, log io.Reader) {
	t.Helper()
	lines := json.NewDecoder(log)
	for p.webhook == "" || p.metrics == "" || p.health == "" {
		var line struct{ Msg, Endpoint, Address, Error string }
		if err := lines.Decode(&line); err != nil {
			t.Fatalf("the program ended before it listened: %v", err)
		}
		switch line.Endpoint {
		case "webhook":
			p.webhook = line.Address
		case "metrics":
			p.metrics = line.Address
		case "health":
			p.health = line.Address
		}
		if line.Error != "" {
			t.Fatalf("%s: %s", line.Msg, line.Error)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
}

// client trusts the program's first certificate only.
func (p *program) client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.trust, MinVersion: tls.VersionTLS13}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get answers with the code and the body of a plain HTTP page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(bytes.TrimSpace(body))
}
