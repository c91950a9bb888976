package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

var errCertificate = errors.New("no certificate")

// certificates are the files by which a server and the agent know each other.
// Like a login they are read anew for each connection, and a file that is not
// there is as none.
type certificates struct {
	caFile            string // the system's CAs without it
	certFile, keyFile string // the agent's own
	serverName        string // that the server's must have; empty: the host's
}

// secure speaks TLS over conn, which is closed on an error.
func (c certificates) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	config, err := c.config(addr)
	if err == nil {
		secured := tls.Client(conn, config)
		if err = secured.HandshakeContext(ctx); err == nil {
			return secured, nil
		}
	}
	_ = conn.Close()
	return nil, err
}

func (c certificates) config(addr string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.serverName}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}
	var err error
	if config.RootCAs, err = c.roots(); err != nil {
		return nil, fmt.Errorf("the redis CA: %w", err)
	}
	if config.Certificates, err = c.own(); err != nil {
		return nil, fmt.Errorf("the redis client certificate: %w", err)
	}
	return config, nil
}

func (c certificates) roots() (*x509.CertPool, error) {
	if c.caFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.caFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: %s has none in PEM form", errCertificate, c.caFile)
	}
	return pool, nil
}

func (c certificates) own() ([]tls.Certificate, error) {
	if c.certFile == "" || c.keyFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCertificate, err)
	}
	return []tls.Certificate{pair}, nil
}
