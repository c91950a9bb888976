package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const review = `{
	"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
	"request": {
		"uid": "u", "operation": "CREATE", "namespace": "jobs",
		"kind": {"version": "v1", "kind": "Pod"}, "resource": {"version": "v1", "resource": "pods"},
		"object": {
			"apiVersion": "v1", "kind": "Pod",
			"metadata": {"name": "etl", "annotations": {"holdfast.dev/mutex": "etl"}},
			"spec": {"containers": [{"name": "app", "image": "busybox"}]}
		}
	}
}`

func TestServesAndEnds(t *testing.T) {
	p := start(t, -time.Hour, time.Hour)

	response, err := p.client(t).Post("https://"+p.webhook+inject.PodsPath, "application/json", strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.Response == nil || !answer.Response.Allowed || !bytes.Contains(answer.Response.Patch, []byte("holdfast-agent")) {
		t.Errorf("no agent in %+v", answer.Response)
	}

	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(t, "http://"+p.health+path); code != http.StatusOK || body != "ok" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	_, metrics := get(t, "http://"+p.metrics+"/metrics")
	for _, want := range []string{`holdfast_admissions_total{result="injected"} 1`, "holdfast_admission_seconds_count 1", "holdfast_certificate_expiry_timestamp_seconds 1.", "go_goroutines", "process_"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}

	p.stop()
	if code := <-p.exit; code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
}

// Cases vault-helm#787 and polaris-controller#50: a certificate that has expired
// is not found out until pods are refused.
func TestCaseB41NotReadyWithABadCertificate(t *testing.T) {
	tests := map[string]struct {
		from, to time.Duration
		want     string
	}{
		"expired":       {-2 * time.Hour, -time.Hour, "the certificate expired at "},
		"not valid yet": {time.Hour, 2 * time.Hour, "the certificate is not valid before "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := start(t, tc.from, tc.to)
			if code, body := get(t, "http://"+p.health+"/readyz"); code != http.StatusServiceUnavailable || !strings.HasPrefix(body, tc.want) {
				t.Errorf("/readyz: %d %s; want 503 %s", code, body, tc.want)
			}
			if code, _ := get(t, "http://"+p.health+"/healthz"); code != http.StatusOK {
				t.Errorf("/healthz: %d; a restart would not help", code)
			}
			p.stop()
			<-p.exit
		})
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	p := start(t, -time.Hour, time.Hour)
	if got := p.serial(t); got != 1 {
		t.Fatalf("serial number %d, want 1", got)
	}
	writeCertificate(t, p.dir, 2, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	for p.serial(t) != 2 { // until the test's own time is up
	}
	p.stop()
	<-p.exit
}

// serial is that of the certificate which a new connection is shown.
func (p *program) serial(t *testing.T) int64 {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it is looked at below
	conn, err := dialer.DialContext(t.Context(), "tcp", p.webhook)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A request under way is answered though the program was told to end.
func TestEndWaitsForRequests(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	e := endpoint{name: "slow", handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stop() // the end is asked for while this request is under way
		<-ctx.Done()
		_, _ = io.WriteString(w, "done")
	})}
	ended := make(chan error, 1)
	go func() { ended <- e.serve(ctx, l, slog.New(slog.DiscardHandler)) }()

	if code, body := get(t, "http://"+l.Addr().String()); code != http.StatusOK || body != "done" {
		t.Errorf("request under way: %d %s", code, body)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	dir := t.TempDir()
	settings := filepath.Join(dir, "settings.yaml")
	writeFile(t, settings, []byte(settingsText))
	writeFile(t, filepath.Join(dir, "bad.yaml"), []byte("kind: X"))
	writeCertificate(t, dir, 1, time.Now(), time.Now().Add(time.Hour))
	none := []string{"--metrics-listen", "", "--health-listen", "", "--listen", "127.0.0.1:0"}

	tests := map[string]struct {
		args []string
		code int
		want string // in what is said
	}{
		"no settings":           {nil, exitUsage, "--config is missing"},
		"settings not there":    {[]string{"--config", "/nowhere", "--cert-dir", dir}, exitUsage, "/nowhere"},
		"bad settings":          {[]string{"--config", filepath.Join(dir, "bad.yaml"), "--cert-dir", dir}, exitUsage, "must be WebhookSettings"},
		"no certificate":        {[]string{"--config", settings, "--cert-dir", t.TempDir()}, exitUsage, "config/README.md says how to make one"},
		"certificate, no key":   {[]string{"--config", settings, "--tls-cert", "x"}, exitUsage, "go together"},
		"no kubeconfig":         {[]string{"--config", settings, "--cert-dir", dir, "--kubeconfig", "/nowhere"}, exitUsage, "--kubeconfig=/nowhere"},
		"an unknown flag":       {[]string{"--conf", settings}, exitUsage, "flag provided but not defined"},
		"an argument":           {[]string{"serve"}, exitUsage, `takes no arguments, but got ["serve"]`},
		"a port that is taken":  {append(none, "--config", settings, "--cert-dir", dir, "--listen", taken.Addr().String()), exitFailed, "--listen=" + taken.Addr().String() + ": listen tcp"},
		"a port alone":          {append(none, "--config", settings, "--cert-dir", dir, "--metrics-listen", "8080"), exitFailed, "--metrics-listen=8080: listen tcp: address 8080: missing port"},
		"asked for its version": {[]string{"--version"}, exitOK, "dev"},
		"asked for help":        {[]string{"--help"}, exitOK, "-cert-dir"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			if code := run(t.Context(), tc.args, &said, &said); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(said.String(), tc.want) {
				t.Errorf("said %q, want %q in it", said.String(), tc.want)
			}
		})
	}
}

// One endpoint that fails ends the others.
func TestServerEndsWithItsFirstFailure(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1, time.Now(), time.Now().Add(time.Hour))
	cert, err := loadCertificate(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{log: slog.New(slog.DiscardHandler), cert: cert, endpoints: []endpoint{
		{name: "fine", address: "127.0.0.1:0", handler: http.NotFoundHandler()},
		{name: "broken", flag: "--broken-listen", address: "127.0.0.1:http-but-wrong", handler: http.NotFoundHandler()},
	}}
	if err := s.serve(context.Background()); err == nil || !strings.HasPrefix(err.Error(), "broken: ") {
		t.Errorf("error %v, want one of the broken endpoint", err)
	}
}
