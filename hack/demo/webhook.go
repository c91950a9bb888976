package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// agentImage is what the webhook injects here. The node knows its only program.
const agentImage = "holdfast-agent.example/demo"

// secretName is the Secret that every namespace has.
const secretName = "holdfast-redis"

// settings is the webhook's file.
const settings = `apiVersion: config.holdfast.dev/v1alpha1
kind: WebhookSettings
image: ` + agentImage + `
redis:
  secretName: ` + secretName + `
`

// startWebhook starts the real webhook with a certificate made for it, and
// returns once it is ready.
func startWebhook(ctx context.Context, ps *processes, program, dir string) (admission, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return admission{}, err
	}
	certificate, err := writeCertificate(dir)
	if err != nil {
		return admission{}, fmt.Errorf("make a certificate: %w", err)
	}
	config := filepath.Join(dir, "settings.yaml")
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return admission{}, err
	}
	address, err := freeAddress()
	if err != nil {
		return admission{}, err
	}
	health, err := freeAddress()
	if err != nil {
		return admission{}, err
	}
	log := &output{}
	p, err := ps.start(command{
		argv: []string{
			program, "--config", config, "--cert-dir", dir,
			"--listen", address, "--health-listen", health, "--metrics-listen", "",
		},
		dir: dir, env: environ(nil), output: log,
	})
	if err != nil {
		return admission{}, err
	}
	if err := waitReady(ctx, p, "http://"+health+"/readyz"); err != nil {
		return admission{}, fmt.Errorf("start the webhook: %w; it wrote:\n%s", err, log.tail())
	}
	return admission{url: "https://" + address + "/mutate-pods", client: trusting(certificate)}, nil
}

// waitReady waits until url answers, as a readiness probe would.
func waitReady(ctx context.Context, p *process, url string) error {
	var ended bool
	err := waitUntil(ctx, func() bool {
		select {
		case <-p.ended:
			ended = true
		default:
		}
		return ended || probeOnce(ctx, http.DefaultClient, url)
	})
	if ended {
		return fmt.Errorf("it ended with exit code %d", p.exit)
	}
	return err
}
