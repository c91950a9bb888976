package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-dev/holdfast/pkg/inject"
	"github.com/holdfast-dev/holdfast/pkg/revisions"
)

// errNoCluster is how pods are refused that need a look at the cluster by a
// program that was started outside of one.
var errNoCluster = errors.New("the webhook knows no API server: start it with --kubeconfig, or in a pod with a token")

// clusterConfig says where the API server is: in the kubeconfig file, or the one
// of the pod's own cluster. It is nil if there is neither.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig=%s: %w", kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	return config, err
}

func ownerLookup(config *rest.Config) (inject.OwnerLookup, error) {
	if config == nil {
		return func(context.Context, string, metav1.OwnerReference) (*inject.Owner, error) { return nil, errNoCluster }, nil
	}
	return revisions.NewLookup(config)
}
