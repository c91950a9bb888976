// Package apiserver tests what only a Kubernetes API server can tell: it starts
// a real one, applies the manifests of config/ to it as kustomize renders them,
// and runs the real holdfast-webhook beside it, as the user that the manifests
// make for it. There are no controllers and no nodes: tests create pods as
// controllers do, and look at what the API server made of them.
//
// The API server is started once. Tests keep apart by having a namespace each.
package apiserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// shared is the one cluster, nil where there are no programs to start it with.
var shared *cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if !installed() {
		if os.Getenv("HOLDFAST_REQUIRE_REAL") == "1" {
			fmt.Fprintln(os.Stderr, "no kube-apiserver and etcd in KUBEBUILDER_ASSETS: `make test` builds them")
			return 1
		}
		return m.Run()
	}
	var err error
	if shared, err = startCluster(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.stop()
	return m.Run()
}

// useCluster skips the test where there is no cluster.
func useCluster(t *testing.T) *cluster {
	t.Helper()
	if shared == nil {
		t.Skip("no kube-apiserver and etcd in KUBEBUILDER_ASSETS: `make test` builds them")
	}
	return shared
}

func installed() bool {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if _, err := exec.LookPath(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), program)); err != nil {
			return false
		}
	}
	return true
}
