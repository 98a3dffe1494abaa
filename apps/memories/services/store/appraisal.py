"""Appraise memories to store, by the installation's word lists and retention times; values that the caller set take precedence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from arbor.errors import ConfigurationInvalid
from arbor.memory.importance import DEFAULT_WORDS, Appraisal, appraise, appraised_role, at_least
from arbor.memory.text.phrases import WordLists, read_word_lists
from arbor.memory.values import DEFAULT_TTL, MemoryType, NewMemory, Retention


def word_lists() -> WordLists:
    """Return Arbor's word lists, extended by the file ARBOR_IMPORTANCE_WORDS. Raises ConfigurationInvalid."""
    return _word_lists(settings.ARBOR_IMPORTANCE_WORDS)


@lru_cache(maxsize=2)
def _word_lists(path: str) -> WordLists:
    return DEFAULT_WORDS.extended(read_word_lists(Path(path))) if path else DEFAULT_WORDS


# Cached, because a note is appraised up to three times: when it is created, made lasting, and stored.
@lru_cache(maxsize=128)
def _appraised(content: str, role: str, kind: MemoryType, path: str) -> Appraisal:
    return appraise(content, role=role, type=kind, lists=_word_lists(path))


def ttl_of(retention: Retention) -> timedelta | None:
    """Return the time to live of memories with a retention; None: they do not expire. Raises ConfigurationInvalid."""
    days = settings.ARBOR_TTL_DAYS.get(retention.value)
    if days is None:
        return DEFAULT_TTL[retention]
    try:
        ttl = timedelta(days=days)
        if ttl < timedelta():
            raise ValueError("below 0")
    except (OverflowError, ValueError) as error:
        name = f"ARBOR_TTL_{retention.value.upper()}_DAYS"
        raise ConfigurationInvalid(f"{name} must be a number of days, 0 for ever, got {days}") from error
    return ttl or None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppraisedValues:
    """The importance, retention and expiry with which a memory is stored."""

    importance: float
    retention: Retention
    expires_at: datetime | None


def appraise_memory(memory: NewMemory, *, least: Retention | None = None) -> AppraisedValues:
    """Return the importance, retention and expiry of a memory; values that the caller set are unchanged.

    An appraised retention is raised to `least`; if the caller set an expiry, an appraised permanent retention is lowered to lasting.
    Other expiries are computed from the current time.
    """
    importance, retention = memory.importance, memory.retention
    if importance is None or retention is None:
        role = appraised_role(role=memory.role, source=memory.source)
        appraisal = _appraised(memory.content, role, memory.type, settings.ARBOR_IMPORTANCE_WORDS)
        if importance is None:
            importance = appraisal.importance
        if retention is None:
            retention = at_least(appraisal.retention, least) if least else appraisal.retention
            if memory.expires_at is not None and retention is Retention.PERMANENT:
                retention = Retention.LASTING
    expires_at = memory.expires_at
    if expires_at is None and (ttl := ttl_of(retention)):
        expires_at = _expiry(ttl)
    return AppraisedValues(importance=importance, retention=retention, expires_at=expires_at)


def lasting(memory: NewMemory) -> NewMemory:
    """Return a memory with lasting retention, or permanent if its text asks for that.

    A retention that the caller set is unchanged. The importance is appraised when the memory is stored.
    """
    if memory.retention is not None:
        return memory
    return replace(memory, retention=appraise_memory(memory, least=Retention.LASTING).retention)


def _expiry(ttl: timedelta) -> datetime | None:
    try:
        return datetime.now(UTC) + ttl
    except OverflowError:
        # Beyond the range of datetime: no expiry.
        return None
