"""Appraise a memory's importance and retention when it is stored, by its text and its speaker.

The factors are those of seed 001, "Importance scoring" and "Automatic Expiration"; the weights are Arbor's. The lists of
words are in `importance_words.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from arbor.memory.text.lexical import fold, term_of
from arbor.memory.text.phrases import CLAUSE_ENDS, SENTENCE_ENDS, WordLists, read_word_lists, tokens_of
from arbor.memory.values import DEFAULT_IMPORTANCE, MemoryType, Retention

#: The addends of the factors to the importance of a memory without a given one.
DECISION_ADDS = 0.2
APPROVAL_ADDS = 0.15
MONEY_ADDS = 0.15
ACTION_ADDS = 0.1
ERROR_ADDS = 0.1
#: The highest importance by factors; only "remember this" gives more.
HIGHEST_BY_FACTORS = 0.95
#: The importance of small talk: below 0.2, where early cleanup begins (seed 001).
SMALL_TALK_IMPORTANCE = 0.15
#: The importance of "remember this" (seed 001).
EXPLICIT_IMPORTANCE = 1.0

#: The role of speakers whose "remember this" is obeyed. Texts of peers, pages and the agent itself are data, not requests.
USER = "user"
#: The source of texts that a person gives an agent.
OPERATOR = "operator"
#: Roles that report their own work: the agent and its tools. A person who reports a failure has another role.
_OWN_ROLES = frozenset({"", "agent", "assistant", "function", "system", "tool", "tool_result"})
#: The longest small talk, in words.
_SMALL_TALK_WORDS = 12
_SCALES = frozenset({"k", "m", "bn", "thousand", "million", "billion"})
_AMOUNT = re.compile(r"[$€£¥₹]\s?\d|\d\s?[€£₹]")

#: The lists that come with Arbor.
DEFAULT_WORDS: WordLists = read_word_lists(Path(__file__).with_name("importance_words.yaml"))

#: The rank of each retention, from the shortest to the longest.
_RANKS = {
    retention: position
    for position, retention in enumerate(
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
    """Appraise a text: its importance, from 0 to 1, and its retention. Case and white space do not count.

    `role` is the speaker, as in `NewMemory`. A user's "remember this" is 1.0 and permanent, small talk 0.15; otherwise each
    factor adds to 0.5, up to 0.95. Other facts, procedures and patterns get a lasting retention.
    """
    folded = fold(text)
    tokens = tokens_of(folded)
    speaker = role.casefold()
    if speaker == USER and (asked := _asks_to_remember(tokens, lists)):
        return Appraisal(
            importance=EXPLICIT_IMPORTANCE, retention=Retention.PERMANENT, reasons=(f"asked: {asked}",)
        )
    words = [token for token in tokens if token not in CLAUSE_ENDS]
    if _is_small_talk(words, lists):
        retention = Retention.ROUTINE if type is MemoryType.EPISODIC else Retention.LASTING
        return Appraisal(importance=SMALL_TALK_IMPORTANCE, retention=retention, reasons=("small talk",))
    factors = _factors(folded, tokens, lists)
    importance = min(HIGHEST_BY_FACTORS, DEFAULT_IMPORTANCE + sum(_ADDS[factor] for factor in factors))
    return Appraisal(
        importance=round(importance, 4),
        retention=_retention(factors, speaker, type),
        reasons=tuple(f"{factor}: {word}" for factor, word in factors.items()),
    )


def appraised_role(*, role: str, source: str) -> str:
    """Return the role by which a text is appraised: a text that a person gives an agent counts as said by a user."""
    return role or (USER if source == OPERATOR else "")


def at_least(retention: Retention, least: Retention, *, unless: Collection[Retention] = ()) -> Retention:
    """Return the longer of two retentions; one of `unless` is returned unchanged."""
    return retention if retention in unless or _RANKS[retention] >= _RANKS[least] else least


_ADDS = {
    "decision": DECISION_ADDS,
    "approval": APPROVAL_ADDS,
    "money": MONEY_ADDS,
    "action": ACTION_ADDS,
    "error": ERROR_ADDS,
}


def _factors(folded: str, tokens: list[str], lists: WordLists) -> Mapping[str, str]:
    """Return the factors of a text, each with the first words that show it."""
    stems = [term_of(token) for token in tokens]
    denials = lists.denials.words
    factors = {}
    for factor, phrases, denied_by in (
        ("decision", lists.decision, frozenset()),
        ("approval", lists.approval, frozenset()),
        ("money", lists.money, frozenset()),
        ("action", lists.action, frozenset()),
        ("error", lists.error, denials),
    ):
        if position := phrases.first_in(stems, unless_after=denied_by):
            factors[factor] = " ".join(tokens[position])
    if amount := _amount(folded, tokens, lists):
        factors["money"] = amount
    return factors


def _amount(folded: str, tokens: list[str], lists: WordLists) -> str:
    if sign := _AMOUNT.search(folded):
        return sign.group()
    units = lists.money_units.words
    if units.isdisjoint(tokens):
        return ""
    for position, token in enumerate(tokens):
        if token in units:
            before = tokens[max(0, position - 2) : position]
            if before and before[-1] in _SCALES:
                before.pop()
            after = tokens[position + 1 : position + 2]
            if (before and before[-1][-1].isdigit()) or (after and after[0].isdigit()):
                return token
    return ""


def _retention(factors: Mapping[str, str], speaker: str, kind: MemoryType) -> Retention:
    """Return the retention of a memory that is neither small talk nor permanent."""
    if kind is not MemoryType.EPISODIC:
        return Retention.LASTING
    if "decision" in factors or "approval" in factors:
        return Retention.DECISION
    if speaker in _OWN_ROLES and "error" in factors:
        return Retention.ERROR
    if speaker in _OWN_ROLES and "action" in factors:
        return Retention.TASK
    return Retention.LASTING


def _is_small_talk(words: list[str], lists: WordLists) -> bool:
    """Return whether the words are only small talk and fillers, or a greeting with a name."""
    if not 0 < len(words) <= _SMALL_TALK_WORDS:
        return False
    other_words = lists.greetings.without(lists.small_talk.without(words))
    unknown_words = [word for word in other_words if word not in lists.fillers.words]
    if len(other_words) == len(words):
        return False
    is_greeting = lists.greetings.length_at(words, 0) > 0
    return not unknown_words or (
        is_greeting
        and len(unknown_words) == 1
        and unknown_words[0].isalpha()
        and unknown_words[0] == words[-1]
    )


def _asks_to_remember(tokens: list[str], lists: WordLists) -> str:
    """Return the words of the text that ask to remember it; empty if there are none.

    Such words begin a clause, perhaps after a request: "I can't remember this" does not ask, nor does "Remember this?".
    """
    if not lists.remember.may_be_in(tokens):
        return ""
    # The positions from which the search has failed already: a long row of requests is read once.
    failed: set[int] = set()
    for start, word in enumerate(tokens):
        if word != "please" and start and tokens[start - 1] not in CLAUSE_ENDS:
            continue
        position = start
        while position not in failed and (length := lists.requests.length_at(tokens, position)):
            failed.add(position)
            position += length
        if position in failed:
            continue
        failed.add(position)
        length = lists.remember.length_at(tokens, position)
        if length and _is_request(tokens, position + length, lists, polite=position > start):
            return " ".join(tokens[position : position + length])
    return ""


def _is_request(tokens: list[str], end: int, lists: WordLists, *, polite: bool) -> bool:
    """Return whether words that ask to remember are a request, by the words after them."""
    following = tokens[end] if end < len(tokens) else "."
    if following in CLAUSE_ENDS:
        return following != "?" or polite
    if following in lists.reminiscences.words:
        return False
    closing = next((token for token in tokens[end:] if token in SENTENCE_ENDS), ".")
    return closing != "?" or polite
