package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
)

// options is what the command line says.
type options struct {
	config         string // the settings file
	listen         string // for the API server, with TLS
	certDir        string // where tls.crt and tls.key are
	tlsCert        string // instead of the one in certDir
	tlsKey         string // instead of the one in certDir
	redisDir       string // where url, username and password are; empty for none
	kubeconfig     string // instead of the pod's own cluster
	leaseNamespace string // empty for the pod's own
	metricsListen  string // empty for none
	healthListen   string // empty for none
	version        bool
}

// parseOptions reads the command line. What is wrong is said on stderr too, with
// the usage.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("holdfast-webhook", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.config, "config", "", "settings `file`; required")
	flags.StringVar(&o.listen, "listen", ":9443", "`address` for the API server, with TLS")
	flags.StringVar(&o.certDir, "cert-dir", "/etc/holdfast/tls", "`folder` with tls.crt and tls.key, which are read again when they change")
	flags.StringVar(&o.tlsCert, "tls-cert", "", "certificate `file`, if not in --cert-dir")
	flags.StringVar(&o.tlsKey, "tls-key", "", "key `file`, if not in --cert-dir")
	flags.StringVar(&o.redisDir, "redis-dir", "/etc/holdfast/redis", "`folder` with the url of Redis and, where it needs them, username and password; without a url the agents are not told of undone revisions")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says where the API server is; by default it is that of the pod's cluster")
	flags.StringVar(&o.leaseNamespace, "lease-namespace", "", "`namespace` of the Lease by which one replica tells the agents; by default the pod's own")
	flags.StringVar(&o.metricsListen, "metrics-listen", ":8080", "`address` for /metrics; empty for none")
	flags.StringVar(&o.healthListen, "health-listen", ":8081", "`address` for /healthz and /readyz; empty for none")
	flags.BoolVar(&o.version, "version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if err := o.check(flags.Args()); err != nil {
		_, _ = fmt.Fprintf(stderr, "holdfast-webhook: %v\n", err)
		return o, err
	}
	return o, nil
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("takes no arguments, but got %q", rest)
	case o.version:
		return nil
	case o.config == "":
		return errors.New("--config is missing: name the settings file")
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key go together: set both or none")
	}
	if o.tlsCert == "" {
		o.tlsCert = filepath.Join(o.certDir, "tls.crt")
		o.tlsKey = filepath.Join(o.certDir, "tls.key")
	}
	return nil
}
