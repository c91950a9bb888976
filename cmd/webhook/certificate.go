package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// certificate is the server's own, read from files and read again when they
// change.
type certificate struct {
	*certwatcher.CertWatcher
}

func loadCertificate(certFile, keyFile string) (*certificate, error) {
	w, err := certwatcher.New(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w; config/README.md says how to make one", certFile, keyFile, err)
	}
	return &certificate{w}, nil
}

func (c *certificate) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: c.GetCertificate}
}

// check tells why an API server would not accept the certificate at this moment.
func (c *certificate) check(now time.Time) error {
	leaf, err := c.leaf()
	switch {
	case err != nil:
		return err
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate expired at %s", leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

func (c *certificate) leaf() (*x509.Certificate, error) {
	cert, err := c.GetCertificate(nil)
	if err != nil {
		return nil, err
	}
	if cert == nil || cert.Leaf == nil {
		return nil, errors.New("there is no certificate")
	}
	return cert.Leaf, nil
}

// expiry is a metric to alert on before the pods do.
func (c *certificate) expiry() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "holdfast_certificate_expiry_timestamp_seconds",
		Help: "When the webhook's certificate expires, in Unix time; 0 if there is none.",
	}, func() float64 {
		leaf, err := c.leaf()
		if err != nil {
			return 0
		}
		return float64(leaf.NotAfter.Unix())
	})
}
