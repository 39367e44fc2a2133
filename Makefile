# The commands of a checkout. `make help` lists them.

PYTHON ?= python3
PORT ?=
ARGS ?=
STORE ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
PYTEST = $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed

# malloc asks for large pages: a big sandbox is seeded a tenth faster. Where there are none, nothing changes.
export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1

# Byte code and the bundled contract are cached, whatever the environment says: a start without them takes a second more.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test check night lint bench contract crash judges pictures docs soak mutants model verify-mutants

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PORT=4700 chooses the port of run; STORE=postgresql the store of the journeys of check; ARGS='…' passes arguments through; PYTHON=python3.12 the interpreter."

setup: $(STAMP) ## make the environment in .venv/

# Installed anew only when the dependencies have changed. `make run` installs what running needs and no more; what tests
# need has all of that, so it is installed at once, and pip goes through those packages a single time.
$(RUNS): NEEDED = .
$(STAMP): NEEDED = .[dev]
$(RUNS) $(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Making $(VENV)/ …"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing what $(if $(findstring dev,$(NEEDED)),tests need,the sandbox needs) into $(VENV)/ (once, up to a minute) …"
	@$(INSTALL) '$(NEEDED)'
	@$(BIN)/python -m compileall -q stub_server
	@touch $(RUNS) $@

run: $(RUNS) ## start the sandbox on 127.0.0.1:4600
	@$(BIN)/stub-server serve $(if $(PORT),--port $(PORT)) $(ARGS)

test: $(STAMP) ## the short run of the tests: three minutes on two cores
	@echo 'The short run: about three minutes on two cores. Nearly all tests: make check.'
	@$(PYTEST) --short $(ARGS)

check: $(STAMP) ## every test but those of the night, in turn where they are long (STORE=postgresql or sqlite for all journeys)
	@echo 'About five minutes on two cores. The short run: make test. Everything: make night.'
	@$(PYTEST) --sample $(if $(STORE),--store $(STORE)) $(ARGS)

night: $(STAMP) ## everything that takes long, and a page about it, build/night/night.md (ARGS='crash soak' for parts)
	@$(BIN)/python -m tests.night $(ARGS)

lint: $(STAMP) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/stub-server check
	@$(BIN)/python -m tests.size --total

bench: $(STAMP) ## measure it against stock Connexion, bare Starlette and the floor
	@$(BIN)/python -m tests.benchmarks $(ARGS)

soak: $(STAMP) ## ten minutes of everything at once: memory, refusals, waits (ARGS='--minutes 1')
	@$(BIN)/python -m tests.soak $(ARGS)

crash: $(STAMP) ## kill servers six hundred times and look at what their stores have (ARGS='--kills 50 --replicas 20')
	@$(BIN)/python -m tests.crash $(ARGS)

contract: $(STAMP) ## let schemathesis and verify judge a running sandbox by its contract
	@$(BIN)/python -m tests.contract $(ARGS)

pictures: $(STAMP) ## take the pictures of docs/ anew, with the Chromium of this machine
	@$(BIN)/python -m tests.pictures

docs: $(STAMP) ## write the reference pages of docs/ anew, from the contract and the code
	@$(BIN)/python -m tests.reference

judges: $(STAMP) ## let redocly, prism, specmatic and client generators judge contract and server
	@$(BIN)/python -m tests.judges

model: $(STAMP) ## play three hundred random lives against the model
	@$(BIN)/python -m tests.properties $(ARGS)

mutants: $(STAMP) ## plant two hundred defects, one at a time, and see whether a test notices (ARGS=--short)
	@$(BIN)/python -m tests.mutants $(ARGS)

verify-mutants: $(STAMP) ## let verify find sixty mutants of our own server: half an hour (ARGS=--seed 2)
	@$(BIN)/python -m tests.verify $(ARGS)
