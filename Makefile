# Ferry's commands. `make` alone lists them.

TOOLS := hack/tools
BIN   := bin
GO    ?= go
CC    := $(shell $(GO) env CC)
# What ferry --version says. Without git it is what the go command knows.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

# Everything is pure Go. Without this the tests compile all dependencies a second time where a C compiler is found.
export CGO_ENABLED := 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the binaries into bin/
	$(GO) build -ldflags '-X main.version=$(VERSION)' -o $(BIN)/ ./cmd/...

.PHONY: demo
demo: ## Start a manager and two workers, run sample jobs, leave the clusters up; KINDS=all: one job of each kind, with its operator
	@echo "compiling the playground's own command (about a minute the first time)"
	@$(GO) run ./playground/cmd/playground demo $(if $(KINDS),--kinds '$(KINDS)')

.PHONY: down
down: ## Stop and remove the demo's clusters
	$(GO) run ./playground/cmd/playground down

# The tests of test/e2e and test/takeover build and start a playground of their own, one after the other; from an
# empty cache that compiles Kubernetes once.
.PHONY: test
test: ## Run all tests: pure, scenario, e2e; and where there is a C compiler, the race detector
	$(GO) test -timeout 60m ./...
	@if command -v $(CC) >/dev/null; then $(MAKE) --no-print-directory race; \
	else echo "NOT RUN: the race detector (make race), which needs a C compiler; there is no $(CC)"; fi

# The race detector is the one thing here that needs C. The random worlds are fewer, as each takes several times as long.
.PHONY: race
race: export CGO_ENABLED := 1
race: ## Run the pure and scenario tests under the race detector
	@command -v $(CC) >/dev/null || { echo "make race needs a C compiler, and there is no $(CC): install gcc"; exit 1; }
	$(GO) test -race -timeout 30m ./internal/... ./cmd/... ./config/... ./playground/...
	$(GO) test -race -timeout 30m ./test/scenario -worlds 200

.PHONY: lint
lint: tools ## Vet, staticcheck, formatting, complexity, and the rules of the house
	@unformatted=$$(gofmt -l $$($(GO) list -f '{{.Dir}}' ./...)); \
	if [ -n "$$unformatted" ]; then echo "Not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(BIN)/staticcheck ./...
	$(BIN)/gocyclo -over 11 -ignore '_test\.go$$' cmd internal playground
	$(GO) test ./test/house

# The linters are pinned in a module of their own, so that the product's go.mod stays small.
.PHONY: tools
tools:
	@cd $(TOOLS) && $(GO) build -o $(CURDIR)/$(BIN)/ honnef.co/go/tools/cmd/staticcheck github.com/fzipp/gocyclo/cmd/gocyclo

.PHONY: test-capacity
test-capacity: ## Compare predictions of what fits on a worker with a real Kueue; PAIRS=2000: so many (600), SEED=2: others
	$(GO) test ./test/e2e -count=1 -v -timeout 60m -run TestPredictionsAgreeWithKueue -capacity-pairs $(or $(PAIRS),600) -capacity-seed $(or $(SEED),1)

.PHONY: golden
golden: ## Rewrite golden files and generated docs; look at the diff before committing it
	$(GO) test ./internal/kinds ./internal/plan ./internal/install ./internal/app -run 'TestGolden|TestDocs' -update

.PHONY: bench-pure
bench-pure: ## Measure a look at a job, a resync, and memory, without clusters; JOBS=10000: so many jobs wait (1000)
	$(GO) test ./internal/app -run '^$$' -bench Look -benchtime 5000x
	$(GO) test ./internal/app -run '^$$' -bench 'Resync|Memory' -benchtime 1x -timeout 60m -load-jobs $(or $(JOBS),1000)

.PHONY: bench
bench: ## Measure Ferry, and stock MultiKueue, on the playground
	$(GO) test ./test/bench -run '^$$' -bench . -benchtime 1x -timeout 60m
