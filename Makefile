# Sightline's tasks. `make help` lists them.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
INSTALLED := $(VENV)/.installed
INSTALLED_TEST := $(VENV)/.installed-test
PYTHONS := python3 python3.11 python3.12 python3.13 python3.14
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install run test check bench lock format

help: ## list the tasks
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 18

install: $(INSTALLED) ## make .venv with what Sightline needs to run

run: $(INSTALLED) ## start Sightline; ARGS="..." is passed on
	@$(BIN)/sightline $(ARGS)

test: $(INSTALLED_TEST) ## run every test; pure packages need full branch coverage
	@$(BIN)/python -m pytest -n auto --pure-coverage

check: $(INSTALLED_TEST) ## format, lint, types, import layers, architecture
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_architecture.py

format: $(INSTALLED_TEST) ## rewrite the code in the agreed layout
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(INSTALLED) ## print speed ratios, measured side by side
	@$(BIN)/python -m bench.run $(ARGS)

lock: | $(BIN)/python ## pin the newest versions that fit pyproject.toml
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	$(BIN)/python -m venv "$$scratch" && \
	"$$scratch/bin/python" -m pip -qq --disable-pip-version-check install -e '.[test]' && \
	"$$scratch/bin/python" -m pip --disable-pip-version-check freeze --exclude-editable > "$$scratch/freeze" && \
	LC_ALL=C sort -f "$$scratch/freeze" > requirements.lock

# A stamp is older than these two files exactly when the environment is out of date.
$(INSTALLED): pyproject.toml requirements.lock | $(BIN)/python
	@echo "installing Sightline into $(VENV)"
	@$(PIP) install -e . -c requirements.lock
	@touch $@

$(INSTALLED_TEST): pyproject.toml requirements.lock | $(BIN)/python
	@echo "installing Sightline and its test tools into $(VENV)"
	@$(PIP) install -e '.[test]' -c requirements.lock
	@touch $(INSTALLED) $@

$(BIN)/python:
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    $$python -m venv --clear $(VENV) && exit 0; \
	    rm -rf $(VENV); \
	    echo "$$python could not make $(VENV); on Debian and Ubuntu, install its -venv package" >&2; exit 1; \
	  fi; \
	done; \
	echo "Sightline needs Python 3.11 or newer; none of these is: $(PYTHONS)" >&2; exit 1
