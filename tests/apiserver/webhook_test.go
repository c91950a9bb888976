package apiserver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// webhook is the real holdfast-webhook as a process, on a free port.
type webhook struct {
	cmd     *exec.Cmd
	address string
}

// startWebhook builds it and starts it with the settings among the manifests.
// What it reads is put into dir.
func startWebhook(dir string, manifests []*unstructured.Unstructured, certificate, key []byte) (*webhook, error) {
	settings, err := settingsOf(manifests)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "settings.yaml": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	program := filepath.Join(dir, "holdfast-webhook")
	build := exec.Command("go", "build", "-o", program, "./cmd/webhook")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return runWebhook(exec.Command(program,
		"--config", filepath.Join(dir, "settings.yaml"), "--cert-dir", dir,
		"--listen", "127.0.0.1:0", "--metrics-listen", "", "--health-listen", ""))
}

func runWebhook(cmd *exec.Cmd) (*webhook, error) {
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address, err := listening(log)
	if err != nil {
		return nil, errors.Join(err, cmd.Wait())
	}
	go io.Copy(io.Discard, log) // it ends with the process
	return &webhook{cmd, address}, nil
}

// listening reads the log until it says where the API server is listened to.
func listening(log io.Reader) (address string, err error) {
	var lines []string
	for scanner := bufio.NewScanner(log); scanner.Scan(); {
		var line struct{ Msg, Endpoint, Address string }
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Msg == "listening" && line.Endpoint == "webhook" {
			return line.Address, nil
		}
		lines = append(lines, scanner.Text())
	}
	return "", fmt.Errorf("the webhook does not listen:\n%s", strings.Join(lines, "\n"))
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
