# cnmsql: `make help` tells what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION ?= 0.1.0
TOOL := go tool -modfile=tools/dev/go.mod
# What goes through it is told at the end of make test when it was skipped.
GOTEST := go run ./tools/gotest
LDFLAGS := -s -w -X cnmsql.co/internal/version.Version=$(VERSION)

.PHONY: help
help: ## Tell what the targets do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Watch a three-instance cluster come up and survive the loss of its primary
	go run ./test/demo

.PHONY: demo-down
demo-down: ## Remove the demo and its local Kubernetes
	go run ./test/demo -down

.PHONY: test
test: export CNMSQL_TESTED := bin/tested
test: tested-anew checks ## What every change has to pass: checks, real API server and mysqld, one end-to-end test a capability
	@$(MAKE) --no-print-directory -j2 test-sim-beside test-real-then-e2e
	@$(GOTEST) -say

# The simulation asks no clock: it takes the time that those leave who wait for a server.
.PHONY: test-sim-beside test-real-then-e2e
test-sim-beside:
	nice -n 19 $(MAKE) --no-print-directory -j1 check-sim

# The tests with a real mysqld mostly wait, too: those with other servers go beside them.
test-real-then-e2e:
	$(MAKE) --no-print-directory -j3 test-real e2e-ready
	$(MAKE) --no-print-directory -j1 test-e2e

.PHONY: e2e-ready
e2e-ready: # compiles and links what the end-to-end tests begin with
	nice -n 10 $(MAKE) --no-print-directory image
	nice -n 10 go build -C tools/localkube -o $(CURDIR)/bin/localkube .
	nice -n 10 go test -c -tags e2e -o /dev/null ./test/e2e

# A local Kubernetes that a run left behind takes time from all tests. One that is in use is left alone.
.PHONY: tested-anew
tested-anew:
	@mkdir -p bin && : > bin/tested
	@test -n "$$E2E_KEEP" || flock -n -E 0 "$${TMPDIR:-/tmp}/cnmsql-testbed-$${E2E_NAME:-e2e}.lock" \
		go run -C tools/localkube . down --name "$${E2E_NAME:-e2e}"

.PHONY: test-all
test-all: export CNMSQL_ALL = 1
test-all: check test-random test-real test-alerts test-real-80 test-clone test-loadbench test-idle test-store-google test-store-azure ## Everything: every fault end to end, MySQL 8.0, 20,000 seeds beside a soak, the benchmark's budgets
	$(MAKE) -j2 --output-sync=target test-sim test-soak
	$(MAKE) test-e2e-all
	$(MAKE) test-bench # last: a budget that is missed hides no fault

.PHONY: check
check: checks race check-sim ## Checks: format, vet, lint, generated files, unit tests, the race detector, 4,000 seeds of the simulation

.PHONY: checks
checks: modules format vet lint generated unit

.PHONY: modules
modules: # a go.sum that lacks a line is seen only where the module was never built
	go mod tidy -diff
	go -C tools/localkube mod tidy -diff
	go -C tools/objectstore mod tidy -diff
	go -C tools/oldest mod tidy -diff

.PHONY: format
format:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "not formatted (run gofmt -w): $$bad"; exit 1; }

.PHONY: vet
vet:
	go vet -tags e2e ./...
	go vet -C tools/localkube ./...
	go vet -C tools/objectstore ./...
	go vet -C tools/oldest ./...

.PHONY: lint
lint:
	$(TOOL) staticcheck -tags e2e ./...
	go run ./tools/lint

.PHONY: generate
generate: ## Make the generated files again
	$(TOOL) controller-gen object:headerFile=/dev/null paths=./api/... crd output:crd:dir=charts/cnmsql/files
	go test -count=1 ./internal/policy -update
	$(TOOL) crd-ref-docs --source-path=api/v1alpha1 --config=tools/dev/api-reference.yaml --renderer=markdown --output-path=docs/api-reference.md --log-level=ERROR
	go run ./tools/decisions
	go run ./tools/names
	go run ./test/bench -table
	$(TOOL) helm template cnmsql charts/cnmsql --namespace cnmsql-system --set namespace.create=true > dist/install.yaml

GENERATED := api/v1alpha1/zz_generated.deepcopy.go charts/cnmsql/files charts/cnmsql/templates docs/api-reference.md docs/decisions.md docs/names.md docs/benchmarks.md dist

.PHONY: generated
generated: generate
	@git diff --exit-code -- $(GENERATED) || { echo "generated files are not current: commit what 'make generate' changed"; exit 1; }

.PHONY: unit
unit: # drawn from a seed that stays, so that a change is judged by what it changed
	RAPID_SEED=1 RAPID_CHECKS=2000 $(GOTEST) $$(go list ./... | grep -v '/internal/sim$$')
	$(GOTEST) -C tools/localkube ./...
	$(GOTEST) -C tools/oldest ./...

.PHONY: race
race: ## The race detector on operator, instance manager, control API and writer; needs a C compiler
	@if echo '#include <stdlib.h>' | $$(go env CC) -E - >/dev/null 2>&1; then \
		CGO_ENABLED=1 go test -race ./internal/operator ./internal/instance ./internal/control ./test/writer/...; \
	else \
		echo "race: LEFT OUT: there is no C compiler with its headers (Debian: apt-get install gcc libc6-dev)"; \
	fi

.PHONY: test-random
test-random: ## The invariants on 500,000 observations that nobody has seen, and GTID sets drawn again
	RAPID_CHECKS=500000 go test -count=1 -timeout 20m -run 'OfAnyObservation|AreToldOnce|Algebra' ./internal/core/async ./internal/gtid

.PHONY: test-real
test-real: test-real-mysqld test-real-servers ## Tests against a real API server, a real mysqld and a real S3 server, without a cluster

.PHONY: test-real-mysqld test-real-servers
test-real-mysqld:
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs) RAPID_SEED=1 $(GOTEST) -count=1 -timeout 20m -parallel 4 ./internal/gtid ./internal/mysql ./internal/instance ./test/writer

test-real-servers:
	CNMSQL_KUBE_BIN=$$(dirname $$(go run -C tools/localkube . build)) $(GOTEST) -count=1 ./test/crd ./test/scalebench
	CNMSQL_KUBE_BIN=$$(dirname $$(go run -C tools/localkube . build)) $(GOTEST) -count=1 -run TestARealAPIServer ./internal/operator
	$(MAKE) test-store

# promtool of Debian's package prometheus, which is unpacked and not installed.
PROMTOOL := $(HOME)/.cache/cnmsql/promtool/usr/bin/promtool

$(PROMTOOL):
	rm -rf $(HOME)/.cache/cnmsql/promtool && mkdir -p $(HOME)/.cache/cnmsql/promtool
	cd $(HOME)/.cache/cnmsql/promtool && apt-get -qq -o APT::Sandbox::User=root download prometheus && dpkg-deb --extract prometheus_*.deb . && rm prometheus_*.deb

.PHONY: test-alerts
test-alerts: $(PROMTOOL) ## The alerts of the chart against the series of outages, with promtool
	CNMSQL_PROMTOOL=$(PROMTOOL) go test -count=1 ./test/alerts

.PHONY: test-loadbench
test-loadbench: ## What make bench-load does, tried with a real mysqld
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs) go test -count=1 ./test/loadbench

.PHONY: test-idle
test-idle: ## What make bench-idle does, for a moment
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs) CNMSQL_IDLE=3s go test -count=1 -run TestWhatAnIdleManagerCosts ./internal/instance

.PHONY: test-store
test-store: ## The object store against a real S3 server over TLS, and against faults
	CNMSQL_S3_BIN=$$(go run -C tools/objectstore . build) $(GOTEST) -count=1 ./internal/store/... ./internal/retention
	CNMSQL_S3_BIN=$$(go run -C tools/objectstore . build) $(GOTEST) -count=1 -run S3Store ./internal/archive ./internal/backup

.PHONY: test-store-google
test-store-google: ## The object store against a server that speaks as Google Cloud Storage
	CNMSQL_GCS_BIN=$$(go run -C tools/objectstore . build-gcs) go test -count=1 ./internal/store/... -run Google

.PHONY: test-store-azure
test-store-azure: ## The object store against Azurite, a server that speaks as Azure Blob Storage; needs npm and Node.js
	CNMSQL_AZURE_BIN=$$(go run -C tools/objectstore . build-azure) go test -count=1 ./internal/store/... ./internal/retention -run 'Azur|TestAStoreTellsItsTime|TestEachStoreMerges'

.PHONY: test-real-80
test-real-80: ## The instance manager's tests with a mysqld of 8.0, the oldest series that is promised
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs --release 8.0) \
		CNMSQL_MYSQL_ROOTFS_OTHER=$$(go run ./tools/image mysql-rootfs) go test -count=1 -timeout 20m -parallel 4 ./internal/instance

.PHONY: test-clone
test-clone: ## Snapshots, backups and restores of a real mysqld, of both series that are promised
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs) go test -count=1 -timeout 10m -p 1 ./internal/clone ./internal/backup ./internal/archive ./internal/byhand ./internal/client
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs --release 8.0) go test -count=1 -timeout 10m -p 1 ./internal/clone ./internal/backup ./internal/archive ./internal/byhand ./internal/client

.PHONY: backup-kills
backup-kills: ## Backups of a real mysqld that are killed again and again, restored and compared: make backup-kills RUNS=50 RELEASE=8.0
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs $(if $(RELEASE),--release $(RELEASE))) CNMSQL_BACKUP_RUNS=$(or $(RUNS),50) go test -count=1 -timeout 2h -v -run TestKilledAndTakenAgain ./internal/backup

.PHONY: test-e2e
test-e2e: ## End-to-end tests on a local Kubernetes of their own: what docs/tests.md lists for make test
	$(GOTEST) -count=1 -timeout 40m -tags e2e -v ./test/e2e

.PHONY: test-e2e-all
test-e2e-all: ## All of them
	go test -count=1 -timeout 100m -tags e2e -v ./test/e2e -all

.PHONY: bench
bench: ## Measure interruptions of writes: make bench ONLY=fault,... DURABILITY=name,... RUNS=n FOR=15m LOADED=1
	go run ./test/bench $(if $(LOADED),-loaded) $(if $(ONLY),-only $(ONLY)) $(if $(DURABILITY),-durability $(DURABILITY)) -runs $(or $(RUNS),10) $(if $(FOR),-for $(FOR))

.PHONY: bench-backup
bench-backup: ## Measure backups and restores of a real mysqld: make bench-backup SIZE=5GiB
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs) CNMSQL_S3_BIN=$$(go run -C tools/objectstore . build) go run ./test/backupbench -size $(or $(SIZE),1GiB)

.PHONY: bench-load
bench-load: ## Measure transactions a second under each durability: make bench-load ONLY=pair,quorum WORKLOAD=insert CONNECTIONS=1,64
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs) go run ./test/loadbench $(if $(ONLY),-only $(ONLY)) $(if $(WORKLOAD),-workload $(WORKLOAD)) $(if $(CONNECTIONS),-connections $(CONNECTIONS))

.PHONY: bench-idle
bench-idle: ## Measure what instances at rest cost: make bench-idle FOR=60s
	CNMSQL_MYSQL_ROOTFS=$$(go run ./tools/image mysql-rootfs) CNMSQL_IDLE=$(or $(FOR),40s) go test -count=1 -v -run TestWhatAnIdleManagerCosts ./internal/instance | grep -e idle_test -e '^ok'

.PHONY: bench-scale
bench-scale: ## Measure an operator with many Clusters, whose instances are played: make bench-scale CLUSTERS=1,100
	$(MAKE) build
	CNMSQL_KUBE_BIN=$$(dirname $$(go run -C tools/localkube . build)) go run ./test/scalebench $(if $(CLUSTERS),-clusters $(CLUSTERS)) $(if $(NAMESPACES),-namespaces $(NAMESPACES)) $(if $(FOR),-for $(FOR))

.PHONY: test-bench
test-bench: ## Three runs of each fault under quorum and in a group, ten where a budget is missed, held against the budgets of docs/benchmarks.md
	go run ./test/bench -check -runs 3 -durability quorum,group

.PHONY: soak
soak: ## Draw faults on a real cluster under load, and judge: make soak FOR=10m SEED=n
	go run ./test/soak -for $(or $(FOR),1h) $(if $(SEED),-seed $(SEED))

.PHONY: test-soak
test-soak: ## Ten minutes of the soak
	go run ./test/soak -for 10m -seed 1

.PHONY: check-sim
check-sim: # with the mutants of the rules, each of which it has to find; it gets the time that others leave
	$(GOTEST) -timeout 20m ./internal/sim
	go run ./tools/sim -seeds 4000 -coverage=false

.PHONY: test-sim
test-sim: ## 20,000 seeds of the simulation of internal/sim and of that of a group, in the time that others leave
	nice -n 19 go run ./tools/sim -from 20000 -seeds 20000
	FROM=20000 SEEDS=20000 nice -n 19 go test -count=1 -timeout 30m -run TestSimulation ./internal/core/group

.PHONY: sim
sim: ## Run the simulation of internal/sim: make sim SEEDS=n
	go run ./tools/sim -seeds $(or $(SEEDS),2000)

.PHONY: sim-night
sim-night: ## Run the simulation through the night, on seeds nobody has seen
	go run ./tools/sim -from $$(date +%s)000000 -for 8h

.PHONY: build
build: ## Build the binaries into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/cnmsql ./cmd/cnmsql
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/kubectl-cnmsql ./cmd/kubectl-cnmsql

.PHONY: image
image: build ## Build the images into bin/, without Docker; the operator's also holds the demo's writer
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/writer ./test/writer/cmd/writer
	go run ./tools/image operator --binary bin/cnmsql --file bin/writer:/writer --tag localhost/cnmsql/operator:dev --out bin/operator.tar
	go run ./tools/image mysql --tag localhost/cnmsql/mysql:9.7 --out bin/mysql.tar
