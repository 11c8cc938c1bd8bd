# Two commands for a newcomer: `make demo` and `make test`. Each sets up all it needs; a second call starts in seconds.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# `make test PYTEST_ARGS="tests/assignors -k sticky"` runs a part.
PYTEST_ARGS ?=

.PHONY: demo test lint unit test-deep bench wheel format kafka-image audit lock clean help

help:
	@echo "make demo         the main job on sample data; needs Python 3.11+ only"
	@echo "make test         lint, types, layers and every test this machine can run; lists what did not run and why"
	@echo "make test-deep    the long proofs: MINUTES=30 against Java, RUNS=200000 of each protocol (MEMBER_RUNS=20000 with"
	@echo "                  members), SCENARIOS=10000, leaps, SEQUENCES=2000 with a broker, FRAMES=2000000 of hostile peers,"
	@echo "                  CHAOS=20 minutes, Spark killed"
	@echo "make bench        speed as ratios against named peers"
	@echo "make kafka-image  a local apache/kafka image from the machine's Java and Maven, nothing pulled"
	@echo "make wheel        dist/rebalance_lab-*.whl, which spark-submit takes as --py-files"
	@echo "make audit        every direct dependency: its locked version, its licence, and why it is there"
	@echo "make lock         resolves requirements/*.lock anew, with uv"
	@echo "make format       let ruff format the code"
	@echo "make clean        remove .venv and caches"

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit("make: Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] + "; name another with PYTHON=...") if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# What is installed is what the locked sets say, checked by hash; `make lock` resolves them anew.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
OURSELVES := $(INSTALL) --no-deps --no-build-isolation --editable .

$(VENV)/.base: $(VENV)/.python pyproject.toml requirements/base.lock
	@echo "installing rebalance-lab ..."
	@$(INSTALL) --require-hashes --requirement requirements/base.lock
	@$(OURSELVES)
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml requirements/dev.lock
	@echo "installing rebalance-lab with all its extras (a minute or two, once) ..."
	@$(INSTALL) --require-hashes --requirement requirements/dev.lock
	@$(OURSELVES)
	@touch $@ $(VENV)/.base

demo: $(VENV)/.base
	@$(BIN)/rebalance-lab compare examples/scenarios/rolling_deploy.yaml --seeds 12 --html report.html
	@$(BIN)/python -m rebalance_lab.harness.kafka.environment

test: lint unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	@$(BIN)/python -m rebalance_lab.harness.kafka.environment
	$(BIN)/python -m pytest $(PYTEST_ARGS)

MINUTES ?= 30
RUNS ?= 200000
MEMBER_RUNS ?= 20000
SCENARIOS ?= 10000
SEQUENCES ?= 2000
FRAMES ?= 2000000
CHAOS ?= 20
test-deep: $(VENV)/.dev
	$(BIN)/python -m tests.conformance.deep --minutes $(MINUTES)
	$(BIN)/python -m tests.protocol_v1.coordinator.random_runs --runs $(RUNS)
	$(BIN)/python -m tests.protocol_v1.member.random_runs --runs $(MEMBER_RUNS)
	$(BIN)/python -m tests.protocol_v2.coordinator.random_runs --runs $(RUNS)
	$(BIN)/python -m tests.protocol_v2.member.random_runs --runs $(MEMBER_RUNS)
	$(BIN)/python -m tests.protocol_v1.member.mutants
	$(BIN)/python -m tests.protocol_v2.member.mutants
	$(BIN)/python -m tests.harness.random_scenarios --runs $(SCENARIOS)
	$(BIN)/python -m tests.harness.leaps
	$(BIN)/python -m tests.harness.leaps --lives --runs 80
	$(BIN)/python -m tests.harness.kafka.wire.differential --runs $(SEQUENCES) --configs 12
	$(BIN)/python -m tests.harness.kafka.wire.fuzz --frames $(FRAMES) --sockets 50000
	$(BIN)/python -m tests.harness.kafka.wire.interop --rounds 2
	$(BIN)/python -m tests.harness.kafka.live.chaos --minutes $(CHAOS)
	$(BIN)/python -m tests.spark_eval.proofs

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.assignors
	$(BIN)/python -m benchmarks.protocol_v1
	$(BIN)/python -m benchmarks.protocol_v2
	$(BIN)/python -m benchmarks.simulator
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.spark_eval

kafka-image: $(VENV)/.dev
	$(BIN)/python -m tools.local_image

wheel: $(VENV)/.dev
	$(BIN)/python -m hatchling build --target wheel

audit: $(VENV)/.dev
	@$(BIN)/python -m tools.audit

LOCK = $(VENV)/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" pyproject.toml requirements/build.in

lock:
	@test -x $(VENV)/uv/bin/uv || ($(PYTHON) -m venv $(VENV)/uv && $(VENV)/uv/bin/pip install --quiet uv)
	$(LOCK) --upgrade --output-file requirements/base.lock
	$(LOCK) --upgrade --extra api --extra kafka --output-file requirements/service.lock
	$(LOCK) --upgrade --extra dev --output-file requirements/dev.lock

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
