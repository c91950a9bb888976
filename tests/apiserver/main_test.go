// Package apiserver tests what only a Kubernetes API server can tell: it starts
// a real one, applies the manifests of config/ to it as kustomize renders them,
// and runs the real holdfast-webhook beside it, as the user that the manifests
// make for it. There are no controllers and no nodes: tests create pods as
// controllers do, and look at what the API server made of them.
//
// The API server is started once. Tests keep apart by having a namespace each.
package apiserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// shared starts the one cluster when the first test asks for it: what is read
// before that, go test does not know of, and so would answer from its cache when
// KUBEBUILDER_ASSETS has changed.
var shared = sync.OnceValues(func() (*cluster, error) {
	var err error
	running, err = startCluster()
	return running, err
})

var running *cluster // nil as long as no test has asked for it

func TestMain(m *testing.M) {
	code := m.Run()
	if running != nil {
		running.stop()
	}
	os.Exit(code)
}

// useCluster skips the test where there is none to be had, unless that must not be.
func useCluster(t *testing.T) *cluster {
	t.Helper()
	if !installed() {
		const missing = "no kube-apiserver and etcd in KUBEBUILDER_ASSETS: `make test` builds them"
		if os.Getenv("HOLDFAST_REQUIRE_REAL") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func installed() bool {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if _, err := exec.LookPath(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), program)); err != nil {
			return false
		}
	}
	return true
}
