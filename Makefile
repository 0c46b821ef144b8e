# Two commands: `make bench` measures and shows, `make test` checks everything.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?= --suite timm --fp32 --amp --tier quick
PYTEST_ARGS ?=

.PHONY: bench test lint types contracts tests browser postgres format results models aarch64 clean

# The dashboard is up before the first model runs; Ctrl-C finishes the model in hand.
bench: $(VENV)/.run
	$(BIN)/bench run $(ARGS) --serve

test: lint types contracts tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

tests: $(VENV)/.dev browser postgres
	$(BIN)/pytest $(PYTEST_ARGS)

browser: $(VENV)/.dev
	$(BIN)/python tests/browser/provide.py

postgres: $(VENV)/.dev
	$(BIN)/python -m tests.postgres

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

EXPECTED := examples/timm61-fp32-cpu-x86.jsonl.gz tests/data/ci_expected_accuracy/cpu_inductor_timm_inference.csv

# The tables of timed models, from the journals in examples/.
results: $(VENV)/.run
	$(BIN)/python -m benchmarks.results examples/timm*.jsonl.gz --expected $(EXPECTED) > docs/results/timm.md.new
	mv docs/results/timm.md.new docs/results/timm.md

# How all 163 models ended, from the journals in examples/.
models: $(VENV)/.run
	$(BIN)/python -m benchmarks.models examples/models*.jsonl.gz > docs/results/models.md.new
	mv docs/results/models.md.new docs/results/models.md

# Does everything that is pinned install on ARM Linux? Asks the package index; after a change of constraints.txt.
aarch64: $(VENV)/.dev
	$(BIN)/pip install --quiet 'uv>=0.13'
	$(BIN)/python -m benchmarks.aarch64 > docs/results/aarch64.md.new
	mv docs/results/aarch64.md.new docs/results/aarch64.md

$(VENV)/bin/pip:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("bench needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[run]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) build dist *.egg-info
