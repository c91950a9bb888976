//go:build e2e

// Package e2e shows on a real kubelet what Holdfast promises. It takes the
// cluster of KUBECONFIG, into which it installs the manifests of config/, and
// lets pods run whose app keeps a journal (see app/). What is true is told by
// those journals, all on one clock, and by the keys in Redis; never by what an
// agent says of itself.
//
// It runs on the machine of the node, whose clock is that of the journals. As
// root it also freezes and kills processes of pods; where it cannot, the tests
// that need it are skipped. `make e2e` makes such a node; kind is one too. Each
// test has its own namespace, its own Redis, and its own link to it, which can
// be cut. See hack/e2e for the variables.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// shared is the one cluster.
var shared *cluster

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var err error
	if shared, err = newCluster(); err == nil {
		err = errors.Join(shared.lookAround(ctx), shared.install(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.tell(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
