#!/bin/sh
# Compiles the lock files: exact versions with hashes for every platform, and no address of any registry.
# Usage: scripts/lock.sh [option of `uv pip compile`, such as --upgrade]
set -eu
cd "$(dirname -- "$0")/.."
# Set-up installs a uv of its own where the one on the PATH is missing or too old.
uv=.tools/uv/bin/uv
if ! [ -x "$uv" ]; then uv=$(command -v uv); fi

compile() {
    "$uv" pip compile --quiet --universal --generate-hashes --python-version 3.13 \
        --no-header --no-emit-index-url --no-emit-find-links "$@"
}
compile pyproject.toml --group dev --output-file requirements.lock "$@"
compile pyproject.toml --extra otel --constraint requirements.lock --output-file requirements-runtime.lock "$@"
compile --group local-model --constraint requirements.lock --output-file requirements-local-model.lock "$@"
