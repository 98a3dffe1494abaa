"""Decide whether two texts say the same, so that one memory serves for both, and merge the details of the two."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from arbor.memory.details import (
    MOST_ENTRIES,
    Detail,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.lexical import fold
from arbor.memory.trust import MOST_SOURCES, cap, merge_sources, new_sources

#: The key in a fact's detail that the agent doubts it.
DOUBTED = "doubted"
#: Different wordings that a memory keeps beside its own.
WORDINGS_KEPT = 8

_FILLERS = "a an the please thanks actually basically oh ah um uh er hm hmm hey hi hello ok okay"
#: Words that do not change what a text says: articles, politeness, and sounds that fill a pause.
FILLERS = frozenset(_FILLERS.split())
#: "A few" are more than few.
_AFTER_A = frozenset({"few", "little"})

# A sign may change everything ("-5", "C#", "3 €", a thumb up or down, a question mark); what only parts a text does not.
_PARTS = re.compile(
    r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?"  # 12,000.50
    r"|\d+(?:\.\d+)+"  # 3.5, 1.2.3
    r"|[^\W_]+(?:'[^\W_]+)*"  # don't, café, gpt4
    r"|(?<![^\W_])[-\u2212](?=\.?\d)"  # minus
    r"|[^\w\s.,;:!'\"()\[\]{}`*\u2026\u2010-\u2015\u2018-\u201f\u00ab\u00bb-]"
)
_SHORT_FORMS = {
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "cannot": ("can", "not"),
}


def says_the_same(first: str, second: str) -> bool:
    """Return whether two texts of nearly the same meaning make the same claims.

    Vectors are blind for what often matters most: "from Berlin to Rome" has that of "from Rome to Berlin", Monday's is
    near Friday's, and that of "is 4711" near "is not 4711". So the words and signs must be the same ones in the same
    order, uninflected, for "left" is not "leaves". Case, punctuation, FILLERS and short forms of "not" do not count.
    """
    return _claims(first) == _claims(second)


@lru_cache(maxsize=2_000)
def _claims(text: str) -> tuple[str, ...]:
    folded = fold(text)
    words: list[str] = []
    for part in _PARTS.findall(folded):
        words.extend(_spelt_out(part))
    followed = zip(words, [*words[1:], ""], strict=False)
    claims = [word for word, after in followed if word not in FILLERS or _matters(word, after)]
    # A text of nothing but fillers, or without any word, is compared as it is.
    return tuple(claims or words or [" ".join(folded.split())])


def _spelt_out(word: str) -> tuple[str, ...]:
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    if word.endswith("n't") and word != "n't":
        return word.removesuffix("n't"), "not"
    return (word.replace(",", ""),)


def _matters(word: str, after: str) -> bool:
    """Return whether an article is more than that: at the end it is a name ("vitamin A")."""
    return word == "a" and (not after or after in _AFTER_A)


class _Disagree(Exception):
    """Both say something, and not the same."""


def merged(old: Detail, new: Detail) -> Detail | None:
    """Return both as one, of one type; None where they disagree, and cannot be one memory.

    A field that one leaves empty comes from the other. Lists are joined without duplicates; of two confidences the higher
    wins, of a fact only if it has another source, and trust follows from it and the sources. Of unknown fields, the
    first detail's win.
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
        confidence=_confidence(old, new),
        category=_either(old.category, new.category),
        # One above the limit adds next to nothing to its trust.
        sources=sources[:MOST_SOURCES],
        contradictions=_joined(old.contradictions, new.contradictions),
        alignment=old.alignment or new.alignment,
    )


def _confidence(old: SemanticDetail, new: SemanticDetail) -> float:
    """Return the confidence of a fact that was stored again: the same sources never raise it.

    A fact that the agent doubts is as sure as its new sources alone allow, at most.
    """
    added = new_sources(old.sources, new.sources)
    if not added:
        return old.confidence
    most = min(new.confidence, cap(added)) if old.extra.get(DOUBTED) else new.confidence
    return max(old.confidence, most)


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
