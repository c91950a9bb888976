package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// webhook is the real holdfast-webhook as a process, on free ports.
type webhook struct {
	cmd              *exec.Cmd
	address, metrics string
	log              *lockedBuffer
}

// lockedBuffer is a log that a process still writes.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// prepareWebhook builds it, and writes down what it reads: the settings among the
// manifests, and how to reach the API server as the manifests' ServiceAccount.
func (c *cluster) prepareWebhook(ctx context.Context, certificate, key []byte) error {
	settings, err := settingsOf(c.manifests)
	if err != nil {
		return err
	}
	account, err := find(c.manifests, "ServiceAccount")
	if err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigOf(ctx, account.GetNamespace(), account.GetName())
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"tls.crt": certificate, "tls.key": key, "settings.yaml": settings, "kubeconfig": kubeconfig,
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(c.dir, "holdfast-webhook"), "./cmd/webhook")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return nil
}

// kubeconfigOf is a file for a program that is to be what its pod would be.
func (c *cluster) kubeconfigOf(ctx context.Context, namespace, account string) ([]byte, error) {
	token, err := c.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthorityData: c.config.CAData}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "a"}
	config.CurrentContext = "x"
	return clientcmd.Write(*config)
}

// startWebhook runs another replica. A flag that is given twice counts as the last
// one says.
func (c *cluster) startWebhook(flags ...string) (*webhook, error) {
	w := &webhook{log: &lockedBuffer{}}
	w.cmd = exec.Command(filepath.Join(c.dir, "holdfast-webhook"), append([]string{
		"--config", filepath.Join(c.dir, "settings.yaml"), "--cert-dir", c.dir, "--redis-dir", "",
		"--kubeconfig", filepath.Join(c.dir, "kubeconfig"), "--lease-namespace", "holdfast-system",
		"--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--health-listen", "",
	}, flags...)...)
	log, err := w.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	if err := w.readAddresses(log); err != nil {
		return nil, errors.Join(err, w.cmd.Wait())
	}
	go io.Copy(w.log, log) // it ends with the process
	return w, nil
}

// readAddresses reads the log until it has said where all is listened.
func (w *webhook) readAddresses(log io.Reader) error {
	lines := json.NewDecoder(io.TeeReader(log, w.log))
	for w.address == "" || w.metrics == "" {
		var line struct{ Msg, Endpoint, Address string }
		if err := lines.Decode(&line); err != nil {
			return fmt.Errorf("the webhook does not listen: %w\n%s", err, w.log)
		}
		switch line.Endpoint {
		case "webhook":
			w.address = line.Address
		case "metrics":
			w.metrics = line.Address
		}
	}
	return nil
}

func (w *webhook) stop() error {
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return w.cmd.Wait()
}

// settingsOf is the settings file that the manifests ship.
func settingsOf(manifests []*unstructured.Unstructured) ([]byte, error) {
	config, err := find(manifests, "ConfigMap")
	if err != nil {
		return nil, err
	}
	files, _, err := unstructured.NestedStringMap(config.Object, "data")
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("ConfigMap %q has %d files, want the settings only", config.GetName(), len(files))
	}
	for _, content := range files {
		return []byte(content), nil
	}
	panic("unreachable")
}
