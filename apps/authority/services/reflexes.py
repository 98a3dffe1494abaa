"""The facts about this installation that reflexes depend on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from django.conf import settings

from arbor.authority.reflexes import MIN_SECRET_LENGTH, ReflexTerms, secret_digest

_SETTINGS = (
    "SECRET_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "ARBOR_METRICS_TOKEN",
)


def reflex_terms() -> ReflexTerms:
    """Return the digests of the secrets that this process has, and whether tools may be given private hosts."""
    return _terms_of(tuple(_master_keys()))


@lru_cache(maxsize=1)
def _terms_of(master_keys: tuple[str, ...]) -> ReflexTerms:
    """Return the terms for these master keys, which a rotation changes while the process runs."""
    secrets = (*_secret_settings(), *master_keys)
    return ReflexTerms(
        own_secrets=frozenset(secret_digest(text) for text in secrets if len(text) >= MIN_SECRET_LENGTH),
        private_tools=settings.ARBOR_MCP_ALLOW_PRIVATE,
    )


def _secret_settings() -> Iterator[str]:
    yield from (str(getattr(settings, name)) for name in _SETTINGS)
    yield from settings.SECRET_KEY_FALLBACKS
    yield from (str(database.get("PASSWORD") or "") for database in settings.DATABASES.values())
    yield unquote(urlsplit(settings.CELERY_BROKER_URL).password or "")
    yield from (str(mailer.get("OPTIONS", {}).get("password") or "") for mailer in settings.MAILERS.values())
    for header in settings.OTEL_EXPORTER_OTLP_HEADERS.split(","):
        # `NAME=VALUE`, percent-encoded; of `Bearer TOKEN` the token counts.
        yield unquote(header.partition("=")[2]).strip().rpartition(" ")[2]


def _master_keys() -> Iterator[str]:
    source = settings.ARBOR_MASTER_KEYS
    yield from (source.current_text, source.other_text)
    for file in (source.file, source.other_file) if source.file is not None else ():
        with suppress(FileNotFoundError):
            yield file.read_text().strip()
