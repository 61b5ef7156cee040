# `make` lists the targets. Each one calls cargo or a script in scripts/.

MODEL := data/models/SmolLM2-135M-Instruct.Q4_1.gguf

# The database of the demo, with the files that SQLite and the service keep next to it. It is kept
# after a demo, so that a question of the committee can be answered. `make clean` deletes it.
DEMO_DB := data/demo.db
DEMO_FILES := $(DEMO_DB) $(DEMO_DB)-wal $(DEMO_DB)-shm $(DEMO_DB).owners

# The cargo features of the image.
FEATURES ?= grammars

# The question of `make demo`, with any characters: make demo Q='Is 91 prime?'
Q ?= What is the capital of France?
# Passed in the environment as typed, so that neither make nor the shell interprets it.
override Q := $(value Q)
export Q

.DEFAULT_GOAL := help
.PHONY: help setup model demo test check fuzz audit bench run dist docker clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what a build needs and is missing: a C compiler (other targets install what they need)
	@scripts/setup.sh build

model: ## Fetch the weights of the in-process demonstration model (93 MB)
	@scripts/fetch-model.sh

demo: ## Ask the committee a question without any key: make demo Q='...'
	@scripts/setup.sh demo
	@scripts/fetch-model.sh
	@echo "demo: building; the first time this compiles llama.cpp too and takes some minutes"
	@cargo build --locked --features local,grammars --bin conclave
	@echo "demo: the answer is by a weak 135M model inside this process: it shows how the committee works, not how well"
	@case "$$Q" in [AaBbCc]) new= ;; *) new=--new ;; esac; \
		CONCLAVE_CONFIG=llm.config.local.json DATABASE_URL=sqlite://$(DEMO_DB) LOCAL_MODEL_PATH=$(MODEL) \
		cargo run --locked --quiet --features local,grammars --bin conclave -- audit $$new -- "$$Q"
	@echo "demo: if the committee asked a question of its own, answer it with: make demo Q=B"
	@echo "demo: to see a run again: DATABASE_URL=sqlite://$(DEMO_DB) cargo run -q --features local,grammars -- show RUN"

test: ## Run everything that CI runs
	@scripts/test.sh

check: ## Check formatting and lints only
	@scripts/test.sh check

fuzz: ## Look for inputs that break a rule, a minute for each target (needs nightly and cargo-fuzz)
	@scripts/fuzz.sh

audit: ## Check the dependencies against the advisory database (needs the network)
	@tool=$$(scripts/tool.sh cargo-deny 0.20.2) && "$$tool" --locked check advisories

bench: ## Print the tables: faults, crashes, load, a cluster, other services, many stored runs
	@scripts/bench.sh

run: ## Start the service with the settings in .env
	@cargo run --locked --release --bin conclave -- serve

dist: ## Make the tarball and the Debian package in dist/, and test them (needs root for the package)
	@scripts/setup.sh dist
	@scripts/dist.sh

docker: ## Build the container image conclave:latest; make docker FEATURES=local,grammars adds the in-process model
	@docker build --build-arg FEATURES="$(FEATURES)" --build-arg REVISION="$$(git rev-parse HEAD)" --tag conclave:latest .

clean: ## Remove what was built and the demo's database; data/ stays otherwise
	@cargo clean
	@rm -rf dist
	@rm -rf $(DEMO_FILES)
