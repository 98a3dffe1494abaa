"""The facts about this installation that reflexes depend on."""

from __future__ import annotations

from collections.abc import Iterator
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
    "OTEL_EXPORTER_OTLP_HEADERS",
)


@lru_cache(maxsize=1)
def reflex_terms() -> ReflexTerms:
    """Return the digests of the secrets that this process has, and whether tools may be given private hosts."""
    return ReflexTerms(
        own_secrets=frozenset(map(secret_digest, _own_secrets())),
        private_tools=settings.ARBOR_MCP_ALLOW_PRIVATE,
    )


def _own_secrets() -> Iterator[str]:
    values = [
        *(str(getattr(settings, name)) for name in _SETTINGS),
        *settings.SECRET_KEY_FALLBACKS,
        *(str(database.get("PASSWORD") or "") for database in settings.DATABASES.values()),
        unquote(urlsplit(settings.CELERY_BROKER_URL).password or ""),
        *(str(mailer.get("OPTIONS", {}).get("password") or "") for mailer in settings.MAILERS.values()),
        *_master_keys(),
    ]
    for value in values:
        # `name=value` pairs of headers count by their values.
        for part in (value, value.partition("=")[2]):
            if len(part) >= MIN_SECRET_LENGTH:
                yield part


def _master_keys() -> Iterator[str]:
    source = settings.ARBOR_MASTER_KEYS
    yield from (source.current_text, source.other_text)
    if source.file is not None and source.file.exists():
        yield source.file.read_text().strip()
