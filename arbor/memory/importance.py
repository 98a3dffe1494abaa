"""Appraise a memory's importance and retention when it is stored, by its text and its speaker.

The factors are those of seed 001, "Importance scoring" and "Automatic Expiration"; their weights are ours. The lists of
words stand in `importance_words.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from arbor.memory.lexical import fold, term_of
from arbor.memory.phrases import CLAUSE_ENDS, SENTENCE_ENDS, WordLists, read_word_lists, tokens_of
from arbor.memory.values import DEFAULT_IMPORTANCE, MemoryType, Retention

#: What each factor adds to the importance of a memory that nobody has weighed.
DECISION_ADDS = 0.2
APPROVAL_ADDS = 0.15
MONEY_ADDS = 0.15
ACTION_ADDS = 0.1
ERROR_ADDS = 0.1
#: The highest sum of the factors; only "remember this" is certain.
MOST = 0.95
#: Small talk. Below 0.2, where early cleanup begins (seed 001).
SMALL_TALK = 0.15
#: "Remember this" (seed 001).
EXPLICIT = 1.0

#: The role of those whose "remember this" counts. What others write, a page says or the agent notes is data: it asks nothing.
USER = "user"
#: The source of what a person gives an agent.
OPERATOR = "operator"
#: Who speaks of their own work: the agent itself and its tools. A person who reports a failure is not one.
_OWN = frozenset({"", "agent", "assistant", "function", "system", "tool", "tool_result"})
#: Longer texts are no small talk, in words.
_SMALL_TALK_WORDS = 12
_SCALES = frozenset({"k", "m", "bn", "thousand", "million", "billion"})
_AMOUNT = re.compile(r"[$€£¥₹]\s?\d|\d\s?[€£₹]")

#: The lists that come with Arbor.
DEFAULT_WORDS: WordLists = read_word_lists(Path(__file__).with_name("importance_words.yaml"))

#: The order of retention; the longer wins where two apply (`at_least`).
_LENGTH = {
    retention: place
    for place, retention in enumerate(
        (
            Retention.ROUTINE,
            Retention.ERROR,
            Retention.TASK,
            Retention.DECISION,
            Retention.LASTING,
            Retention.PERMANENT,
        )
    )
}


@dataclass(frozen=True, kw_only=True)
class Appraisal:
    """The importance of a text and its retention."""

    #: From 0 to 1.
    importance: float
    retention: Retention
    #: The factors that were found: `decision: decided`.
    reasons: tuple[str, ...] = ()


def appraise(
    text: str,
    *,
    role: str,
    type: MemoryType,  # noqa: A002 (the field's name)
    lists: WordLists = DEFAULT_WORDS,
) -> Appraisal:
    """Return what a text is worth, from 0 to 1, and as what it is kept. Case and white space do not count.

    `role` is who said it, as in `NewMemory`. A user's "remember this" is 1.0 and for good; small talk is 0.15; else each
    factor adds to 0.5, up to 0.95. Only what happened wears out: facts, procedures and patterns last.
    """
    folded = fold(text)
    tokens = tokens_of(folded)
    speaker = role.casefold()
    if speaker == USER and (asked := _asks_to_remember(tokens, lists)):
        return Appraisal(importance=EXPLICIT, retention=Retention.PERMANENT, reasons=(f"asked: {asked}",))
    words = [token for token in tokens if token not in CLAUSE_ENDS]
    if _is_small_talk(words, lists):
        retention = Retention.ROUTINE if type is MemoryType.EPISODIC else Retention.LASTING
        return Appraisal(importance=SMALL_TALK, retention=retention, reasons=("small talk",))
    found = _factors(folded, tokens, lists)
    importance = min(MOST, DEFAULT_IMPORTANCE + sum(_ADDS[factor] for factor in found))
    return Appraisal(
        importance=round(importance, 4),
        retention=_retention(found, speaker, type),
        reasons=tuple(f"{factor}: {word}" for factor, word in found.items()),
    )


def appraised_role(*, role: str, source: str) -> str:
    """Return the role under which a text is appraised: what a person gives an agent is a user's word."""
    return role or (USER if source == OPERATOR else "")


def at_least(retention: Retention, least: Retention, *, but: Collection[Retention] = ()) -> Retention:
    """Return the longer of two retentions; those in `but` stay as they are."""
    return retention if retention in but or _LENGTH[retention] >= _LENGTH[least] else least


_ADDS = {
    "decision": DECISION_ADDS,
    "approval": APPROVAL_ADDS,
    "money": MONEY_ADDS,
    "action": ACTION_ADDS,
    "error": ERROR_ADDS,
}


def _factors(folded: str, tokens: list[str], lists: WordLists) -> Mapping[str, str]:
    """Return the factors that a text has, each with the first words that show it."""
    stems = [term_of(token) for token in tokens]
    denials = lists.denials.words
    found = {}
    for factor, phrases, denied_by in (
        ("decision", lists.decision, frozenset()),
        ("approval", lists.approval, frozenset()),
        ("money", lists.money, frozenset()),
        ("action", lists.action, frozenset()),
        ("error", lists.error, denials),
    ):
        if place := phrases.first_in(stems, unless_after=denied_by):
            found[factor] = " ".join(tokens[place])
    if amount := _amount(folded, tokens, lists):
        found["money"] = amount
    return found


def _amount(folded: str, tokens: list[str], lists: WordLists) -> str:
    if sign := _AMOUNT.search(folded):
        return sign.group()
    units = lists.money_units.words
    if units.isdisjoint(tokens):
        return ""
    for place, token in enumerate(tokens):
        if token in units:
            before = tokens[max(0, place - 2) : place]
            if before and before[-1] in _SCALES:
                before.pop()
            after = tokens[place + 1 : place + 2]
            if (before and before[-1][-1].isdigit()) or (after and after[0].isdigit()):
                return token
    return ""


def _retention(found: Mapping[str, str], speaker: str, kind: MemoryType) -> Retention:
    """Return as what a memory is kept that is neither small talk nor to be kept for good."""
    if kind is not MemoryType.EPISODIC:
        return Retention.LASTING
    if "decision" in found or "approval" in found:
        return Retention.DECISION
    if speaker in _OWN and "error" in found:
        return Retention.ERROR
    if speaker in _OWN and "action" in found:
        return Retention.TASK
    return Retention.LASTING


def _is_small_talk(words: list[str], lists: WordLists) -> bool:
    """Return whether the words are small talk and fillers only, or a greeting and the name of who is greeted."""
    if not 0 < len(words) <= _SMALL_TALK_WORDS:
        return False
    rest = lists.greetings.without(lists.small_talk.without(words))
    left = [word for word in rest if word not in lists.fillers.words]
    if len(rest) == len(words):
        return False
    greeted = lists.greetings.length_at(words, 0) > 0
    return not left or (greeted and len(left) == 1 and left[0].isalpha() and left[0] == words[-1])


def _asks_to_remember(tokens: list[str], lists: WordLists) -> str:
    """Return the words by which the text asks to be remembered, empty if it does not.

    They begin a clause, perhaps after a request: "I can't remember this" does not ask, nor does "Remember this?".
    """
    if not lists.remember.may_be_in(tokens):
        return ""
    for start, word in enumerate(tokens):
        if word != "please" and start and tokens[start - 1] not in CLAUSE_ENDS:
            continue
        place = start
        while length := lists.requests.length_at(tokens, place):
            place += length
        length = lists.remember.length_at(tokens, place)
        if length and _is_request(tokens, place + length, lists, polite=place > start):
            return " ".join(tokens[place : place + length])
    return ""


def _is_request(tokens: list[str], end: int, lists: WordLists, *, polite: bool) -> bool:
    """Return whether the words that ask still ask, by what follows them."""
    following = tokens[end] if end < len(tokens) else "."
    if following in CLAUSE_ENDS:
        return following != "?" or polite
    if following in lists.reminiscences.words:
        return False
    closing = next((token for token in tokens[end:] if token in SENTENCE_ENDS), ".")
    return closing != "?" or polite
