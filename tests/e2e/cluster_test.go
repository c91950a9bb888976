//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	enabledLabel = "holdfast.dev/enabled"
	system       = "holdfast-system"
	webhookName  = "holdfast-webhook"

	pollEvery = 100 * time.Millisecond
)

// cluster is the one of KUBECONFIG, as an administrator sees it.
type cluster struct {
	kubernetes.Interface
	objects client.Client // the same, for objects of any kind

	kubeconfig string
	host       string // this machine's address, as pods reach it
	journals   string // folder on this machine and the node
	revisions  *link  // from the webhook to where it publishes; nowhere, until a test says where

	seesProcesses bool // those of the node's pods, among this machine's
}

func newCluster() (*cluster, error) {
	c := &cluster{
		kubeconfig: os.Getenv("KUBECONFIG"),
		host:       cmp.Or(os.Getenv("HOLDFAST_E2E_ADDRESS"), "10.88.0.1"),
		journals:   cmp.Or(os.Getenv("HOLDFAST_E2E_JOURNALS"), "/var/tmp/holdfast-e2e"),
	}
	if c.kubeconfig == "" {
		return nil, errors.New("no KUBECONFIG: run the suite with hack/e2e")
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 1000 // tests run side by side
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if c.Interface, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	c.objects, err = client.New(config, client.Options{})
	return c, err
}

// install applies config/ and waits until a pod is injected.
func (c *cluster) install(ctx context.Context) error {
	manifests, err := render("install")
	if err != nil {
		return err
	}
	certificate, err := newCertificate(webhookName + "." + system + ".svc")
	if err != nil {
		return err
	}
	if err := trust(manifests, certificate.certificate); err != nil {
		return err
	}
	if c.revisions, err = openLink(c.host, revisionsPort); err != nil {
		return err
	}
	// After the namespace, before the webhook, which reads it when it starts.
	manifests = slices.Insert(manifests, 1, c.redisOfWebhook())
	if err := apply(ctx, c.objects, manifests); err != nil {
		return err
	}
	if err := c.writeCertificate(ctx, certificate); err != nil {
		return err
	}
	return c.untilInjecting(ctx)
}

// revisionsPort is the same in each run, as a webhook may be that of an earlier one.
const revisionsPort = "16379"

func (c *cluster) redisOfWebhook() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": "holdfast-redis", "namespace": system},
		"stringData": map[string]any{"url": c.revisions.url()},
	}}
}

func (c *cluster) writeCertificate(ctx context.Context, pair keyPair) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: webhookName + "-tls"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: pair.certificate, corev1.TLSPrivateKeyKey: pair.key},
	}
	secrets := c.CoreV1().Secrets(system)
	_ = secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{}) // of an earlier run
	_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// untilInjecting waits for the webhook to be up and for the API server to know.
func (c *cluster) untilInjecting(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "until-injecting-", Labels: map[string]string{enabledLabel: "true"},
	}}
	namespace, err := c.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer c.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}) // only tidies up
	var last error
	err = wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		var pod *corev1.Pod
		pod, last = c.CoreV1().Pods(namespace.Name).Create(ctx, newPod("probe", mutex(lockName), bare), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last == nil && len(pod.Spec.InitContainers) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("the webhook does not inject: %w: %w", err, last)
	}
	return nil
}
