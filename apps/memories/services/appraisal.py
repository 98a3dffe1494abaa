"""Weighing memories as they are stored, by the installation's words and times. What the caller says always wins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from arbor.errors import ConfigurationInvalid
from arbor.memory.importance import DEFAULT_WORDS, appraise, at_least
from arbor.memory.phrases import WordLists, read_word_lists
from arbor.memory.retention import DEFAULT_TTL, Retention
from arbor.memory.values import NewMemory


def word_lists() -> WordLists:
    """Return Arbor's lists and what `ARBOR_IMPORTANCE_WORDS` adds. Raises ConfigurationInvalid."""
    return _word_lists(settings.ARBOR_IMPORTANCE_WORDS)


@lru_cache(maxsize=2)
def _word_lists(path: str) -> WordLists:
    return DEFAULT_WORDS.extended(read_word_lists(Path(path))) if path else DEFAULT_WORDS


def ttl_of(retention: Retention) -> timedelta | None:
    """Return how long such a memory is kept, None for ever. Raises ConfigurationInvalid."""
    days = settings.ARBOR_TTL_DAYS.get(retention.value)
    if days is None:
        return DEFAULT_TTL[retention]
    try:
        ttl = timedelta(days=days)
        if ttl < timedelta():
            raise ValueError("it is below 0")
    except (OverflowError, ValueError) as error:
        name = f"ARBOR_TTL_{retention.value.upper()}_DAYS"
        raise ConfigurationInvalid(f"{name} must be a number of days, 0 for ever, got {days}") from error
    return ttl or None


def appraised(
    memory: NewMemory, *, least: Retention | None = None, but: Collection[Retention] = ()
) -> NewMemory:
    """Return the memory with importance, retention and expiry, those that it has as they are.

    A retention that was appraised is `least` or longer, unless it is one of `but`. Time counts from now. An expiry that
    the caller gave is kept, and then nothing is for good.
    """
    importance, retention = memory.importance, memory.retention
    if importance is None or retention is None:
        found = appraise(memory.content, role=memory.role, type=memory.type, lists=word_lists())
        if importance is None:
            importance = found.importance
        if retention is None:
            retention = at_least(found.retention, least, but=but) if least else found.retention
            if memory.expires_at is not None and retention is Retention.PERMANENT:
                retention = Retention.LASTING
    expires_at = memory.expires_at
    if expires_at is None and (ttl := ttl_of(retention)):
        expires_at = _later(ttl)
    if (importance, retention, expires_at) == (memory.importance, memory.retention, memory.expires_at):
        return memory
    return replace(memory, importance=importance, retention=retention, expires_at=expires_at)


def _later(ttl: timedelta) -> datetime | None:
    try:
        return datetime.now(UTC) + ttl
    except OverflowError:
        # Longer than there are dates: for ever.
        return None
