"""Decide whether two texts make the same claims, and merge the details of two such memories."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from arbor.memory.details import (
    MAX_ENTRIES,
    Detail,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.text.lexical import WORD_PATTERN, fold
from arbor.memory.trust import MAX_SOURCES, max_trust, merge_sources, new_sources

#: The key in a fact's detail that marks the fact as doubted by the agent.
DOUBTED = "doubted"
#: The characters of a text up to which its claims are cached.
_CACHED_LENGTH = 2_000
#: The most other wordings that a memory stores.
MAX_WORDINGS = 8

_FILLERS = "a an the please thanks actually basically oh ah um uh er hm hmm hey hi hello ok okay"
#: Words that do not change a claim: articles, politeness, and sounds that fill a pause.
FILLERS = frozenset(_FILLERS.split())
#: Words before which "a" matters: "a few" are more than few.
_QUANTIFIERS_AFTER_A = frozenset({"few", "little"})

# Words, numbers, and the signs that may change a claim ("-5", "C#", "3 €", a thumb up or down, a question mark);
# punctuation that only separates words is left out.
_PARTS = re.compile(
    WORD_PATTERN + r"|(?<![^\W_])[-\u2212](?=\.?\d)"  # minus
    r"|[^\w\s.,;:!'\"()\[\]{}`*\u2026\u2010-\u2015\u2018-\u201f\u00ab\u00bb-]"
)
_CONTRACTIONS = {
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "cannot": ("can", "not"),
}


def says_the_same(first: str, second: str) -> bool:
    """Return whether two texts of nearly the same meaning make the same claims.

    Vectors cannot decide this: "from Berlin to Rome" is near "from Rome to Berlin", Monday near Friday, and "is 4711" near
    "is not 4711". So the words and signs must be equal and in the same order, inflections included, because "left" is not
    "leaves". Case, punctuation, FILLERS and contractions of "not" do not count.
    """
    return _claims_of(first) == _claims_of(second)


def _claims_of(text: str) -> tuple[str, ...]:
    # Thousands of long texts would fill the memory of a worker.
    return _cached_claims(text) if len(text) <= _CACHED_LENGTH else _find_claims(text)


@lru_cache(maxsize=2_000)
def _cached_claims(text: str) -> tuple[str, ...]:
    return _find_claims(text)


def _find_claims(text: str) -> tuple[str, ...]:
    folded = fold(text)
    words: list[str] = []
    for part in _PARTS.findall(folded):
        words.extend(_expand(part))
    pairs = zip(words, [*words[1:], ""], strict=False)
    claims = [word for word, after in pairs if word not in FILLERS or _is_meaningful(word, after)]
    # A text of fillers only, or without any word, is compared as a whole.
    return tuple(claims or words or [" ".join(folded.split())])


def _expand(word: str) -> tuple[str, ...]:
    if word in _CONTRACTIONS:
        return _CONTRACTIONS[word]
    if word.endswith("n't") and word != "n't":
        return word.removesuffix("n't"), "not"
    return (word.replace(",", ""),)


def _is_meaningful(word: str, after: str) -> bool:
    """Return whether an "a" is more than an article: before a quantifier, or as a name at the end ("vitamin A")."""
    return word == "a" and (not after or after in _QUANTIFIERS_AFTER_A)


class _DetailsDiffer(Exception):
    """Two details cannot be merged: a field has two different values, or a list would be too long."""


def merge_details(old: Detail, new: Detail) -> Detail | None:
    """Merge two details of one type; return None where they differ, so that the memories cannot be merged.

    An empty field is filled from the other detail. Lists are joined without duplicates; only the steps of a procedure must be equal.
    The higher confidence wins; the confidence of a fact rises only with a further source. Of fields that the type does not define,
    those of `old` win.
    """
    if old == new:
        return old
    try:
        combined = _merge(old, new)
    except _DetailsDiffer:
        return None
    return replace(combined, extra={**new.extra, **combined.extra})


def _merge(old: Detail, new: Detail) -> Detail:
    match old, new:
        case EpisodicDetail(), EpisodicDetail():
            return replace(
                old,
                context=_only_value(old.context, new.context),
                action=_only_value(old.action, new.action),
                result=_only_value(old.result, new.result),
                emotion=_only_value(old.emotion, new.emotion),
                event_time=_only_value(old.event_time, new.event_time),
            )
        case SemanticDetail(), SemanticDetail():
            return _merge_facts(old, new)
        case ProceduralDetail(), ProceduralDetail():
            return replace(
                old,
                steps=_only_value(old.steps, new.steps),
                prerequisites=_union(old.prerequisites, new.prerequisites),
            )
        case StrategicDetail(), StrategicDetail():
            return replace(
                old,
                pattern=_only_value(old.pattern, new.pattern),
                confidence=max(old.confidence, new.confidence),
                evidence=_union(old.evidence, new.evidence),
                applicability=_union(old.applicability, new.applicability),
            )
    raise _DetailsDiffer


def _merge_facts(old: SemanticDetail, new: SemanticDetail) -> SemanticDetail:
    sources = merge_sources(old.sources, new.sources)
    return replace(
        old,
        confidence=_confidence(old, new),
        category=_only_value(old.category, new.category),
        # A source beyond the limit would add almost nothing to the trust.
        sources=sources[:MAX_SOURCES],
        contradictions=_union(old.contradictions, new.contradictions),
        alignment=old.alignment or new.alignment,
    )


def _confidence(old: SemanticDetail, new: SemanticDetail) -> float:
    """Return the confidence of a fact that was stored again: the same sources never raise it.

    A fact that the agent doubts gets at most the confidence that its new sources alone allow.
    """
    added = new_sources(old.sources, new.sources)
    if not added:
        return old.confidence
    most = min(new.confidence, max_trust(added)) if old.extra.get(DOUBTED) else new.confidence
    return max(old.confidence, most)


def _only_value[T](old: T, new: T) -> T:
    """Return the value that is not empty. Raises _DetailsDiffer for two different values."""
    if old and new and old != new:
        raise _DetailsDiffer
    return old or new


def _union[T](old: Iterable[T], new: Iterable[T]) -> tuple[T, ...]:
    """Return the distinct entries of both. Raises _DetailsDiffer for more entries than one memory can have."""
    combined = tuple(dict.fromkeys([*old, *new]))
    if len(combined) > MAX_ENTRIES:
        raise _DetailsDiffer
    return combined
