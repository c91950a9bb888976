package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	startTimeout = 2 * time.Minute
	pollEvery    = 50 * time.Millisecond
)

// cluster is an API server with Holdfast in it.
type cluster struct {
	kubernetes.Interface               // as an administrator
	objects              client.Client // the same, for objects of any kind

	manifests []*unstructured.Unstructured // what config/ is rendered to, but for the front
	front     *front
	webhook   *webhook
	config    *rest.Config // of the administrator
	env       *envtest.Environment
	dir       string // for what the webhook reads
}

func startCluster() (_ *cluster, err error) {
	c := &cluster{env: &envtest.Environment{}, front: newFront()}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()

	if c.dir, err = os.MkdirTemp("", "holdfast-apiserver-"); err != nil {
		return nil, err
	}
	config, err := c.env.Start()
	if err != nil {
		return nil, err
	}
	if err := c.connect(config); err != nil {
		return nil, err
	}
	return c, c.install(ctx)
}

// install is what the platform team does, but for a front before the webhook.
func (c *cluster) install(ctx context.Context) (err error) {
	if c.manifests, err = render("config"); err != nil {
		return err
	}
	certificate, key, err := c.front.certificate()
	if err != nil {
		return err
	}
	if err := c.front.redirect(c.manifests); err != nil {
		return err
	}
	if err := apply(ctx, c.objects, c.manifests); err != nil {
		return err
	}
	if err := c.prepareWebhook(ctx, certificate, key); err != nil {
		return err
	}
	if c.webhook, err = c.startWebhook(); err != nil {
		return err
	}
	c.front.forward(c.webhook.address)
	return c.untilInjecting(ctx)
}

// untilInjecting waits for the API server to notice its new configuration.
func (c *cluster) untilInjecting(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "until-injecting", Labels: map[string]string{enabledLabel: "true"}}}
	if _, err := c.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		pod, err := c.CoreV1().Pods(namespace.Name).Create(ctx, newPod(mutex), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && injected(pod), err
	})
}

func (c *cluster) connect(config *rest.Config) (err error) {
	config.QPS, config.Burst = 1000, 1000 // tests run side by side
	config.WarningHandlerWithContext = rest.NoWarnings{}
	c.config = config
	if c.Interface, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	c.objects, err = client.New(config, client.Options{})
	return err
}

func (c *cluster) stop() {
	var errs []error
	if c.webhook != nil {
		errs = append(errs, c.webhook.stop())
	}
	errs = append(errs, c.env.Stop(), os.RemoveAll(c.dir))
	c.front.Close()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// eventually fails the test if done does not become true. It is for what the API
// server does in its own time.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollEvery, startTimeout, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// find is the one manifest of that kind.
func find(manifests []*unstructured.Unstructured, kind string) (*unstructured.Unstructured, error) {
	for _, m := range manifests {
		if m.GetKind() == kind {
			return m, nil
		}
	}
	return nil, fmt.Errorf("config/ has no %s", kind)
}
