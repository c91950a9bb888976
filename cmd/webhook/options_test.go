package main

import (
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

func TestOptions(t *testing.T) {
	allowed := cmp.AllowUnexported(options{})
	tests := map[string]struct {
		args []string
		want options
	}{
		"defaults": {
			[]string{"--config", "c"},
			options{config: "c", listen: ":9443", certDir: "/etc/holdfast/tls", tlsCert: "/etc/holdfast/tls/tls.crt", tlsKey: "/etc/holdfast/tls/tls.key", redisDir: "/etc/holdfast/redis", metricsListen: ":8080", healthListen: ":8081"},
		},
		"files by name": {
			[]string{"-config=c", "-tls-cert=a", "-tls-key=b", "-redis-dir=r", "-kubeconfig=k", "-lease-namespace=n", "-metrics-listen=", "-health-listen="},
			options{config: "c", listen: ":9443", certDir: "/etc/holdfast/tls", tlsCert: "a", tlsKey: "b", redisDir: "r", kubeconfig: "k", leaseNamespace: "n"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(tc.args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, allowed); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// Case gatekeeper#262: the API server of a private cluster reaches certain ports
// only. The manifest's flags are ones that there are, the port among them.
func TestCaseB51ManifestSetsThePort(t *testing.T) {
	text, err := os.ReadFile("../../config/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &deployment); err != nil {
		t.Fatal(err)
	}
	got, err := parseOptions(deployment.Spec.Template.Spec.Containers[0].Args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got.listen != ":9443" {
		t.Errorf("listens on %s, want :9443, the port that the manifest declares", got.listen)
	}
}
