"""Merge the details of two memories, when the second says the same as the first; nothing of either is lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from arbor.memory.details import (
    MOST_ENTRIES,
    Detail,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.trust import MOST_SOURCES, merge_sources


class _Disagree(Exception):
    """Both say something, and not the same."""


def merged(old: Detail, new: Detail) -> Detail | None:
    """Return both as one, of one type; None where they disagree, and cannot be one memory.

    A field that one leaves empty comes from the other. Lists are joined without duplicates; of two confidences the higher
    wins, and trust follows from it and the sources. Of unknown fields, the first detail's win.
    """
    if old == new:
        return old
    try:
        both = _merge(old, new)
    except _Disagree:
        return None
    return replace(both, extra={**new.extra, **both.extra})


def _merge(old: Detail, new: Detail) -> Detail:
    match old, new:
        case EpisodicDetail(), EpisodicDetail():
            return replace(
                old,
                context=_either(old.context, new.context),
                action=_either(old.action, new.action),
                result=_either(old.result, new.result),
                emotion=_either(old.emotion, new.emotion),
                event_time=_either(old.event_time, new.event_time),
            )
        case SemanticDetail(), SemanticDetail():
            return _merge_facts(old, new)
        case ProceduralDetail(), ProceduralDetail():
            return replace(
                old,
                steps=_either(old.steps, new.steps),
                prerequisites=_joined(old.prerequisites, new.prerequisites),
            )
        case StrategicDetail(), StrategicDetail():
            return replace(
                old,
                pattern=_either(old.pattern, new.pattern),
                confidence=max(old.confidence, new.confidence),
                evidence=_joined(old.evidence, new.evidence),
                applicability=_joined(old.applicability, new.applicability),
            )
    raise _Disagree


def _merge_facts(old: SemanticDetail, new: SemanticDetail) -> SemanticDetail:
    sources = merge_sources(old.sources, new.sources)
    return replace(
        old,
        confidence=max(old.confidence, new.confidence),
        category=_either(old.category, new.category),
        # One above the limit adds next to nothing to its trust.
        sources=sources[:MOST_SOURCES],
        contradictions=_joined(old.contradictions, new.contradictions),
        alignment=old.alignment or new.alignment,
    )


def _either[T](old: T, new: T) -> T:
    """Return the one that says something. Raises _Disagree for two that say different things."""
    if old and new and old != new:
        raise _Disagree
    return old or new


def _joined[T](old: Iterable[T], new: Iterable[T]) -> tuple[T, ...]:
    """Return all of both, each once. Raises _Disagree for more than the limit of one memory."""
    both = tuple(dict.fromkeys([*old, *new]))
    if len(both) > MOST_ENTRIES:
        raise _Disagree
    return both
