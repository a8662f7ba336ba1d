# Two commands do all the set-up on a machine with Python (>= 3.11) and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
DEV_READY := $(READY)-dev

# The CPU build of this release is smaller by gigabytes than what a bare `torch` brings; tests and peers need no more.
TORCH ?= torch==2.13.0

.PHONY: demo test test-all test-quick attack mutants mutants-quick lint types contracts check experiments peers bench bench-quick clean

demo: $(READY)
	$(BIN)/dpadmm demo --out dpadmm-report

test: $(DEV_READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-all: $(DEV_READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-quick: $(DEV_READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not statistical"

attack: $(DEV_READY)
	rm -rf results/attacks
	DPADMM_ATTACKS=full $(BIN)/python -m pytest -n 2 --dist loadfile tests/attacks
	$(BIN)/python -m tests.attacks.page --write

mutants: $(DEV_READY)
	$(BIN)/python -m tests.mutants

mutants-quick: $(DEV_READY)
	$(BIN)/python -m tests.mutants --quick

lint: $(DEV_READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(DEV_READY)
	$(BIN)/mypy

contracts: $(DEV_READY)
	$(BIN)/lint-imports

check: lint types contracts test

experiments: $(DEV_READY)
	$(BIN)/python -m experiments.adult_smoke
	$(BIN)/python -m experiments.regression
	$(BIN)/python -m experiments.claims
	$(BIN)/python -m experiments.ledger
	$(BIN)/python -m experiments.audit

peers: .venv-peers/.ready .venv-diffprivlib/.ready

bench: $(DEV_READY)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.page --write

bench-quick: $(DEV_READY)
	$(BIN)/python -m benchmarks --quick

.venv-peers/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet '$(TORCH)'
	.venv-peers/bin/python -m pip install --quiet '.[peers]'
	touch $@

.venv-diffprivlib/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-diffprivlib
	.venv-diffprivlib/bin/python -m pip install --quiet '.[peers-diffprivlib]'
	touch $@

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dpadmm needs Python 3.11 or newer: make PYTHON=python3.12 demo")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(DEV_READY): $(READY)
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .venv-peers .venv-diffprivlib dpadmm-report build dist src/*.egg-info
