# The targets that `make help` lists prepare .venv first, which takes no time if nothing has changed.
.DEFAULT_GOAL := help
.PHONY: help setup up down check types rules prepared cases systems test bars lock reference local-model bench audit pictures

VENV := .venv/bin
# The number of processes that run tests.
JOBS ?= 2
# Tests that start systems or processes are distributed by file, each file with folders and ports of its own. They wait half of the
# time, for processes that start and leases that end, so they run beside the other tests. Their output follows.
SYSTEMS ?= $(shell expr $(JOBS) + 1)
SYSTEMS_TESTS := tests/acceptance tests/integration/processes
SYSTEMS_OUTPUT := .pytest_cache/systems.txt

help: ## List the targets
	@printf 'Arbor keeps autonomous agents alive.\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Prepare .venv: finds or installs uv and Python 3.13
	@scripts/setup.sh

up: setup ## Run everything from this terminal; Ctrl-C stops it
	@$(VENV)/arbor up $(ARGS)

down: setup ## Stop what `make up` runs
	@$(VENV)/arbor down

check: setup ## Run every static check: style, words, types, import contracts, migrations
	@$(MAKE) --no-print-directory -j 2 types rules

types:
	$(VENV)/mypy

rules:
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/python -m tests.words
	$(VENV)/lint-imports
	$(VENV)/arbor manage check
	$(VENV)/arbor openapi --check
	PYTHONPATH=clients/python $(VENV)/python -m scripts.api_reference --check
	@# Without a running database Django cannot compare its history, and warns of that for each connection.
	PYTHONWARNINGS="ignore:Got an error checking a consistent migration history:RuntimeWarning" \
		$(VENV)/arbor manage makemigrations --check --dry-run

prepared:
	@$(VENV)/python -m tests.prepare

cases:
	$(VENV)/pytest -n $(JOBS) --dist worksteal -m "not bar" $(SYSTEMS_TESTS:%=--ignore %) $(ARGS)

systems:
	@mkdir -p $(dir $(SYSTEMS_OUTPUT))
	$(VENV)/pytest -n $(SYSTEMS) --dist loadfile --no-loadscope-reorder -m "not bar" $(ARGS) $(SYSTEMS_TESTS) > $(SYSTEMS_OUTPUT) 2>&1

test: setup ## Run every test except those of `make bars`, after the checks of `make check`
	@$(MAKE) --no-print-directory -j 2 types rules prepared
	@$(MAKE) --no-print-directory -j 2 cases systems; status=$$?; cat $(SYSTEMS_OUTPUT); exit $$status
	@printf 'The tests that assert on elapsed time run by themselves: make bars\n'

bars: setup ## Run the tests that assert on elapsed time, one by one
	$(VENV)/pytest -m bar $(ARGS) $$(grep -rl --include='*.py' 'mark\.bar' tests | sort)

lock: setup ## Compile the lock files from pyproject.toml
	@scripts/lock.sh

reference: setup ## Write the documents of the API: docs/reference/openapi.json and api.md
	$(VENV)/arbor openapi > docs/reference/openapi.json
	PYTHONPATH=clients/python $(VENV)/python -m scripts.api_reference > docs/reference/api.md

local-model: ## Add a local model server and its weights, for the test of the real path
	@scripts/setup.sh --local-model

bench: setup ## Measure: make bench ARGS="recall --memories 10000 --agents 20 --json"
	@$(VENV)/python -m bench $(ARGS)

pictures: setup ## Take the pictures of docs/images, from a separate demo installation; needs Chromium
	@$(VENV)/python -m tests.acceptance.pictures

audit: setup ## Report vulnerabilities and licences of the locked packages, and write a bill of materials; asks a public database
	@$(VENV)/python -m scripts.audit $(ARGS)
