# What can be made here; `make` alone lists it.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The version is stamped below. Go's own stamp fails in a checkout that belongs
# to another user.
export GOFLAGS += -buildvcs=false
export HOLDFAST_REQUIRE_REAL

GO_BUILD = CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

# The agent speaks no HTTP/2: without it, it is 0.4 MB smaller.
AGENT_TAGS = -tags nethttpomithttp2

.DEFAULT_GOAL := help
.PHONY: help build demo test e2e lint fmt verify generate bench clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/holdfast-agent and bin/holdfast-webhook
	$(GO_BUILD) $(AGENT_TAGS) -o bin/holdfast-agent ./cmd/sidecar
	$(GO_BUILD) -o bin/holdfast-webhook ./cmd/webhook

demo: ## see pods wait for, get and lose a lock, without a cluster
	@go run ./hack/demo

test: ## run all tests, with real Redis and Kubernetes API servers
	@hack/test

e2e: ## run the end-to-end tests on a real node, as root; hack/e2e tells how to use another cluster
	@hack/e2e $(ARGS)

lint: ## run the linters
	@hack/lint

fmt: ## format the Go code
	@tools=$$(hack/tools/build) && "$$tools/golangci-lint" fmt

verify: ## check that generated files and go.mod files are up to date
	@hack/verify

generate: ## generate docs/annotations.md and whatever else is generated
	go generate ./...

bench: ## measure speed and footprint, compared with other locks
	@hack/bench

clean: ## remove what was built here (caches stay)
	rm -rf bin bench/out
