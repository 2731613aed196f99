# Everything runs in .venv, which the first target makes from Python 3.11 or later; nothing else need be installed.
PYTHON ?= $(firstword $(foreach name,python3 python3.11 python3.12 python3.13 python3.14,$(shell \
	$(name) -c 'import sys; print("$(name)" if sys.version_info >= (3, 11) else "")' 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
# Container images set it. Each worker, and each program that a test starts, would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test coverage soak fleet mutants recordings live bench bench-faults lint docs clean

help: ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

$(BIN)/pip:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; name it: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

$(RUN): pyproject.toml | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --editable '.[local,cli]'
	@touch $@

$(DEV): pyproject.toml | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --editable '.[local,cli,fakes,testing,aio,redis,otel]' --group dev --group docs
	@touch $@ $(RUN)

demo: $(RUN) ## make a repository from a directory on the local forge, below ./demo
	@$(BIN)/gitprovider demo demo

test: $(DEV) ## run all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

coverage: $(DEV) ## run all tests, and show what they do not cover; takes some times as long
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered

soak: $(DEV) ## run the long tests: thousands of random sequences with faults, and load
	$(BIN)/python -m pytest -n 2 --dist worksteal -m soak

fleet: $(DEV) ## run two workers over Postgres and Redis, with lost answers and a killed worker
	$(BIN)/python -m pytest -m fleet

mutants: $(DEV) ## run random mutants of MODULE=… against its tests (TESTS=…, COUNT=20)
	@$(BIN)/python -m tests.support.random_mutants '$(MODULE)' $(TESTS) --count $(or $(COUNT),20)

recordings: $(DEV) ## run recorded exchanges with the hosts, in DIR=…, through converters and translation
	@$(BIN)/python -m tests.support.recordings '$(DIR)'

live: $(DEV) ## run a few tests against the real hosts, in throw-away repositories; says what it needs
	@$(BIN)/python -m pytest -q -rs -m live tests/live || test $$? = 5

# Other libraries for the same hosts. They are measured in an environment of their own, and nothing else needs them.
PEERS := build/peers
$(PEERS)/.installed: Makefile | $(BIN)/pip
	$(BIN)/python -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check gfo ogr PyGithub python-gitlab requests
	@touch $@

bench: $(DEV) $(PEERS)/.installed ## measure what the operations cost, beside other libraries
	@failed=0; for script in processor_time.py sizes.py "cost.py $(PEERS)/bin/python"; do \
		$(BIN)/python benchmarks/$$script || failed=1; done; exit $$failed

bench-faults: $(DEV) $(PEERS)/.installed ## count what other libraries send again after the same faults, and what this one does
	@$(BIN)/python benchmarks/faults.py $(PEERS)/bin/python

lint: $(DEV) ## check format, style, types and who imports whom
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory docs

docs: $(DEV) ## build the documentation, in docs/_build
	$(BIN)/sphinx-build -q -nW --keep-going -b html docs docs/_build

clean: ## remove what the other commands made
	rm -rf $(VENV) build dist demo docs/_build docs/adr .coverage* .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
