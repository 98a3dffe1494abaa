# Every target prepares .venv first; that takes no time when nothing has changed.
.DEFAULT_GOAL := help
.PHONY: help setup up down check types rules prepared cases systems test bars lock reference local-model bench audit pictures

VENV := .venv/bin
# Tests share the cores; those that start whole systems file by file, each file with folders and ports of its own.
JOBS ?= 2
# They wait half of the time, for processes that start and leases that end, so they run beside the others. Their output follows.
SYSTEMS ?= $(shell expr $(JOBS) + 1)
SYSTEMS_OUTPUT := .pytest_cache/systems.txt

help: ## Show what there is
	@printf 'Arbor keeps autonomous agents alive.\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Prepare .venv: finds or installs uv and Python 3.13
	@scripts/setup.sh

up: setup ## Run everything from this terminal; Ctrl-C stops it
	@$(VENV)/arbor up $(ARGS)

down: setup ## Stop what `make up` runs
	@$(VENV)/arbor down

check: setup ## Everything static: style, words, types, import contracts, migrations
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
	$(VENV)/arbor manage makemigrations --check --dry-run

prepared:
	@$(VENV)/python -m tests.prepare

cases:
	$(VENV)/pytest -n $(JOBS) --dist worksteal -m "not bar" --ignore tests/acceptance $(ARGS)

systems:
	@mkdir -p $(dir $(SYSTEMS_OUTPUT))
	$(VENV)/pytest -n $(SYSTEMS) --dist loadfile --no-loadscope-reorder -m "not bar" $(ARGS) tests/acceptance > $(SYSTEMS_OUTPUT) 2>&1

test: setup ## Every test but those of `make bars`, after `make check`
	@$(MAKE) --no-print-directory -j 2 types rules prepared
	@$(MAKE) --no-print-directory -j 2 cases systems; status=$$?; cat $(SYSTEMS_OUTPUT); exit $$status
	@printf 'The tests that assert on elapsed time run by themselves: make bars\n'

bars: setup ## The tests that assert on elapsed time, one by one
	$(VENV)/pytest -m bar $(ARGS) $$(grep -rl --include='*.py' 'mark\.bar' tests | sort)

lock: setup ## Compile the lock files anew from pyproject.toml
	@scripts/lock.sh

reference: setup ## Write the documents of the API anew: docs/reference/openapi.json and api.md
	$(VENV)/arbor openapi > docs/reference/openapi.json
	PYTHONPATH=clients/python $(VENV)/python -m scripts.api_reference > docs/reference/api.md

local-model: ## Add a local model server and its weights, for the test of the real path
	@scripts/setup.sh --local-model

bench: setup ## Measure: make bench ARGS="recall --memories 10000 --agents 20 --json"
	@$(VENV)/python -m bench $(ARGS)

pictures: setup ## Take the pictures of docs/images anew, from a demo installation of its own; needs Chromium
	@$(VENV)/python -m tests.acceptance.pictures

audit: setup ## Known vulnerabilities and licences of the locked packages, and a bill of materials; asks a public database
	@$(VENV)/python -m scripts.audit $(ARGS)
