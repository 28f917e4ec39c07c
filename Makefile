# Two commands do everything on a fresh machine with Python 3.11+ and a C++ compiler: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NATIVE := CMakeLists.txt $(wildcard csrc/*)

.PHONY: help demo test test-all fuzz lint format clean

help:  ## show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

# constraints.txt pins torch to a CPU build; PIP_CONSTRAINT reaches the isolated build environment too.
$(INSTALLED): pyproject.toml constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(INSTALLED)  ## train a small binary network on the embedded digits, with and without its latent weights
	$(BIN)/latentbit demo

test: $(INSTALLED)  ## the tests that guard every commit
	$(BIN)/pytest

test-all: $(INSTALLED)  ## these and the slow ones
	$(BIN)/pytest -m ''

fuzz: $(INSTALLED)  ## five minutes of mutated packed files; SECONDS=60 SEED=7 to choose
	$(BIN)/python tests/fuzz_packed.py --seconds $(or $(SECONDS),300) $(if $(SEED),--seed $(SEED))

lint: $(INSTALLED)  ## ruff, ruff-format, mypy, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(wildcard csrc/*.cpp csrc/*.h)

format: $(INSTALLED)  ## rewrite the sources as lint wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(wildcard csrc/*.cpp csrc/*.h)

clean:  ## remove the environment and the builds
	rm -rf $(VENV) build
