# Everything that Plumb needs on a fresh Debian 12 machine is installed by `demo` and `test` themselves (as root, or with sudo).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
export CGO_ENABLED ?= 0

VERSION := 0.1.0+$(shell git describe --tags --always --dirty=.dirty 2>/dev/null || echo source)
BIN     := bin/plumb

.DEFAULT_GOAL := help
.PHONY: help build setup setup-test demo test test-race test-unit lab lab-down test-lab lint fmt bench bench-loadgen bench-ansible fuzz-short docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/plumb (static, no cgo)
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/plumb

setup: ## install what a fresh Debian 12 machine lacks (Open vSwitch with DPDK, testpmd)
	.ci/setup

demo: setup build ## set up, apply examples/quickstart, print the table, destroy, prove that nothing is left behind
	.ci/demo $(BIN)

setup-test: # what only tests need: the race detector's C compiler, sshd, QEMU
	.ci/setup gcc libc6-dev openssh-server openssh-client sudo
	lab/setup

test: setup-test ## every test, with the real OVS-DPDK and testpmd, and a virtual host (root)
	.ci/test

test-unit: ## tests that need neither root nor daemons
	go test ./...

test-race: setup-test ## every test under the race detector
	CGO_ENABLED=1 RACE=1 .ci/test

lab: ## build (once) and start the virtual host with real kernel features (root; see docs/lab.md); LAB_HOSTS=2: two of them
	lab/setup && lab/build && lab/up

lab-down: ## end the virtual hosts
	lab/down

test-lab: ## the suites for real kernels, on the virtual host (root)
	lab/setup && lab/build && lab/test

lint: ## gofmt, go vet, staticcheck, import rules
	.ci/lint

fmt: ## format Go and HCL files
	gofmt -w $$(git ls-files '*.go')
	for d in modules examples/quickstart examples/module-pvp examples/methods examples/soak; do go run ./cmd/plumb fmt -recursive $$d; done

bench: ## Go benchmarks: plan, no-op plan, apply, destroy of 4,000 resources, and the parsers
	go test -run '^$$' -bench . -benchmem ./...

bench-loadgen: setup build ## loadgen against dpdk-testpmd on one OVS port and core, in pairs (root)
	.ci/bench-loadgen $(BIN)

bench-ansible: setup build ## Plumb against Ansible, on the virtual host (root)
	.ci/bench-ansible $(BIN)

fuzz-short: ## every fuzz target for 10 seconds
	.ci/fuzz 10s

docs: build ## write docs/reference.md from the schemas
	$(BIN) providers schema -markdown > docs/reference.md

clean: ## remove what was built
	rm -rf bin
