# Everything runs in .venv, which the first target makes from Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test lint bench soak live clean

help: ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or later is needed; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[local,cli,fakes,testing,aio]' --group dev
	@touch $@

test: $(STAMP) ## run all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not soak and not live'

lint: $(STAMP) ## format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean: ## remove what the other commands made
	rm -rf $(VENV) build dist demo .coverage* .pytest_cache .mypy_cache .ruff_cache
