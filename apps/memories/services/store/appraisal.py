"""Appraise memories when they are stored, by the installation's word lists and retention times; values of the caller win."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from arbor.errors import ConfigurationInvalid
from arbor.memory.importance import DEFAULT_WORDS, Appraisal, appraise, at_least
from arbor.memory.phrases import WordLists, read_word_lists
from arbor.memory.values import DEFAULT_TTL, MemoryType, NewMemory, Retention


def word_lists() -> WordLists:
    """Return Arbor's lists and what `ARBOR_IMPORTANCE_WORDS` adds. Raises ConfigurationInvalid."""
    return _word_lists(settings.ARBOR_IMPORTANCE_WORDS)


@lru_cache(maxsize=2)
def _word_lists(path: str) -> WordLists:
    return DEFAULT_WORDS.extended(read_word_lists(Path(path))) if path else DEFAULT_WORDS


# A note is appraised when it is made, when it is decided that it lasts, and when it is stored.
@lru_cache(maxsize=128)
def _appraised(content: str, role: str, kind: MemoryType, path: str) -> Appraisal:
    return appraise(content, role=role, type=kind, lists=_word_lists(path))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """The importance and retention that a memory is stored with."""

    importance: float
    retention: Retention
    expires_at: datetime | None


def weigh(memory: NewMemory, *, least: Retention | None = None, but: Collection[Retention] = ()) -> Weight:
    """Return importance, retention and expiry of a memory, those that it has as they are.

    A retention that was appraised is `least` or longer, unless it is one of `but`. Time counts from now. An expiry that
    the caller gave is kept, and then nothing is for good.
    """
    importance, retention = memory.importance, memory.retention
    if importance is None or retention is None:
        found = _appraised(memory.content, memory.role, memory.type, settings.ARBOR_IMPORTANCE_WORDS)
        if importance is None:
            importance = found.importance
        if retention is None:
            retention = at_least(found.retention, least, but=but) if least else found.retention
            if memory.expires_at is not None and retention is Retention.PERMANENT:
                retention = Retention.LASTING
    expires_at = memory.expires_at
    if expires_at is None and (ttl := ttl_of(retention)):
        expires_at = _later(ttl)
    return Weight(importance=importance, retention=retention, expires_at=expires_at)


def lasting(memory: NewMemory, *, but: Collection[Retention] = ()) -> NewMemory:
    """Return a memory that lasts, or is for good when its text asks for it: what somebody chose to keep.

    What was given stays as it is; its importance is still appraised when it is stored.
    """
    if memory.retention is not None:
        return memory
    return replace(memory, retention=weigh(memory, least=Retention.LASTING, but=but).retention)


def _later(ttl: timedelta) -> datetime | None:
    try:
        return datetime.now(UTC) + ttl
    except OverflowError:
        # Longer than there are dates: for ever.
        return None
