package revisions

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

// The two kinds that are watched, by their metadata alone.
var (
	podMeta        = metadataOf("v1", "Pod")
	replicaSetMeta = metadataOf("apps/v1", "ReplicaSet")
)

func metadataOf(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}

// cacheOptions keep of the pods only injected ones, and of each object a few
// hundred bytes: a cluster has ten ReplicaSets for each Deployment.
func cacheOptions() cache.Options {
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			podMeta:        {Label: labels.SelectorFromSet(labels.Set{inject.LabelInjected: "true"}), Transform: strip},
			replicaSetMeta: {Transform: strip},
		},
		ReaderFailOnMissingInformer: true, // nothing else is ever to be watched
	}
}

// strip drops what nobody here asks for.
func strip(object any) (any, error) {
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("cache: %T is not the metadata of an object", object)
	}
	small := &metav1.PartialObjectMetadata{TypeMeta: full.TypeMeta}
	small.Namespace, small.Name, small.UID, small.ResourceVersion = full.Namespace, full.Name, full.UID, full.ResourceVersion
	if controller := metav1.GetControllerOfNoCopy(full); controller != nil {
		small.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: controller.APIVersion, Kind: controller.Kind, Name: controller.Name, UID: controller.UID, Controller: controller.Controller,
		}}
	}
	for _, key := range []string{deploymentRevision, rolloutRevision} {
		if value, ok := full.Annotations[key]; ok {
			if small.Annotations == nil {
				small.Annotations = map[string]string{}
			}
			small.Annotations[key] = value
		}
	}
	return small, nil
}
