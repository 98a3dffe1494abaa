"""The environment of all tests, set before Django reads its settings, without the developer's own variables."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile

#: Variables of a developer's servers and providers, beside all that begin with `ARBOR_`.
_FOREIGN = (
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "REDIS_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OLLAMA_HOST",
)

#: Variables that name data for tests outside of the project.
_DATA = ("ARBOR_LOCOMO_DATA",)

for name in [*_FOREIGN, *(key for key in os.environ if key.startswith("ARBOR_") and key not in _DATA)]:
    os.environ.pop(name, None)
    os.environ.pop(f"{name}_FILE", None)
os.environ["ARBOR_MASTER_KEY"] = secrets.token_hex(32)
os.environ["ARBOR_DATA_DIR"] = tempfile.mkdtemp(prefix="arbor-tests-")
os.environ["ARBOR_ENV_FILE"] = ""
# Crawls open more pages a minute than a person; the tests of these limits set their own.
os.environ["ARBOR_PAGES_PER_MINUTE"] = os.environ["ARBOR_ACTS_PER_MINUTE"] = "0"
# Compiled test modules are reused by the other workers and the later parts of `make test`, even where this is switched off.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
