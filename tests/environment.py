"""The environment of all tests, set before Django reads its settings, without the developer's own variables."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile

#: Variables of a developer's servers, and how those of the project and of providers begin.
_SERVERS = ("DATABASE_URL", "CELERY_BROKER_URL", "REDIS_URL")
_PREFIXES = ("ARBOR_", "OPENAI_", "ANTHROPIC_", "OPENROUTER_", "GEMINI_", "OLLAMA_")

#: Variables that name data for tests outside of the project.
_DATA = ("ARBOR_LOCOMO_DATA",)

for name in list(os.environ):
    if name.removesuffix("_FILE") in _SERVERS or (name.startswith(_PREFIXES) and name not in _DATA):
        del os.environ[name]
os.environ["ARBOR_MASTER_KEY"] = secrets.token_hex(32)
os.environ["ARBOR_DATA_DIR"] = tempfile.mkdtemp(prefix="arbor-tests-")
os.environ["ARBOR_ENV_FILE"] = ""
# Crawls open more pages a minute than a person; the tests of these limits set their own.
os.environ["ARBOR_PAGES_PER_MINUTE"] = os.environ["ARBOR_ACTS_PER_MINUTE"] = "0"
# Like the parts of `arbor up`: idle threads of the library would spin, on the processors that the other tests need.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Compiled test modules are reused by the other workers and the later parts of `make test`, even where this is switched off.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
