"""Conversations: the limits of a turn, of the history in a prompt, and the significance of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arbor.contacts.values import Speaker
from arbor.errors import Invalid
from arbor.memory.content import check_text
from arbor.memory.importance import DEFAULT_WORDS, EXPLICIT_IMPORTANCE, appraise
from arbor.memory.text.code import code_blocks
from arbor.memory.text.lexical import fold
from arbor.memory.text.phrases import WordLists, tokens_of
from arbor.memory.values import DEFAULT_IMPORTANCE, MemoryType
from arbor.quotations import shorten

#: The longest turn of a person, in characters; longer texts are read with `arbor memory ingest`.
TURN_LENGTH = 8_000
#: The longest answer that is stored, in characters.
ANSWER_LENGTH = 20_000
#: Limits of the conversation's history in a prompt: turns (seed 001, "Context Window Management"), tokens of all of them, and
#: characters of one. Earlier turns are summarized.
SHOWN_TURNS = 20
SHOWN_TOKENS = 8_000
TURN_SHOWN_LENGTH = 1_200
#: The turns before these that a rule summarizes for a prompt, where no episode has a summary, and the characters of its summary.
SUMMARIZED_TURNS = 200
RULE_SUMMARY_LENGTH = 1_200
#: The summaries of episodes that a prompt shows, and the characters of one.
EPISODES_SHOWN = 3
SUMMARY_SHOWN_LENGTH = 1_200

#: Characters of the person's text in the thought about a turn.
ASKED_LENGTH = 160

#: Addends of a conversation's significance, whose sum is cut at 1. The addends are Arbor's: seed 004, 5.3, only asks
#: whether the conversation "was significant". "Remember this" is enough by itself.
LENGTH_ADDS = 0.2
REQUESTS_ADD = 0.25
EMOTION_ADDS = 0.2
IMPORTANCE_ADDS = 0.3
CODE_ADDS = 0.2
REMEMBER_ADDS = 0.6
#: Turns of the person that count as a long conversation, and the share of a request that a question counts for.
LONG_TURNS = 10
QUESTION_COUNTS = 0.5
#: From this significance on, a heartbeat follows at once, unless the installation sets another limit.
SIGNIFICANT = 0.35

_REQUESTS = (
    "please",
    "can you",
    "could you",
    "would you",
    "will you",
    "i need",
    "i want you to",
    "i would like you to",
    "help me",
    "remind me",
    "find out",
    "look into",
    "let me know",
    "make sure",
)
_FEELINGS = frozenset(
    (
        "afraid",
        "alarmed",
        "amazing",
        "angry",
        "anxious",
        "ashamed",
        "awful",
        "delighted",
        "desperate",
        "disappointed",
        "excited",
        "fear",
        "frustrated",
        "furious",
        "glad",
        "grateful",
        "grief",
        "happy",
        "hate",
        "heartbroken",
        "hope",
        "horrible",
        "hurt",
        "joy",
        "lonely",
        "love",
        "miserable",
        "proud",
        "sad",
        "scared",
        "sorry",
        "terrible",
        "thrilled",
        "upset",
        "wonderful",
        "worried",
    )
)


@dataclass(frozen=True, kw_only=True)
class WeighedTurn:
    """One turn of a conversation whose significance is computed."""

    speaker: Speaker
    text: str


def check_turn(text: str) -> str:
    """Return a person's text without white space around it. Raises Invalid."""
    text = text.strip()
    if not text:
        raise Invalid(f"a message has 1 to {TURN_LENGTH:,} characters, this one is empty")
    if len(text) > TURN_LENGTH:
        raise Invalid(
            f"a message has 1 to {TURN_LENGTH:,} characters, got {len(text):,}; longer texts are read with `arbor memory ingest`"
        )
    check_text("a message", text)
    return text


def name_of_person(person: str) -> str:
    """Return the name in `user:NAME` or `cli:NAME`."""
    return person.partition(":")[2] or person


def thought_of_turn(name: str, asked: str) -> str:
    """Return the default thought of a turn, where the agent named none."""
    return f"{name} said to me: {shorten(' '.join(asked.split()), ASKED_LENGTH)}"


def significance(turns: Sequence[WeighedTurn], *, lists: WordLists = DEFAULT_WORDS) -> float:
    """Compute a conversation's significance, 0 to 1, from its length, requests, emotions, code and the importance of its turns.

    Only the person's turns count, except code, which counts whoever wrote it. A conversation without a turn of the
    person is 0.
    """
    own = [turn.text for turn in turns if turn.speaker is Speaker.USER]
    if not own:
        return 0.0
    importances = [
        appraise(text, role="user", type=MemoryType.EPISODIC, lists=lists).importance for text in own
    ]
    highest = max(importances)
    remember = highest >= EXPLICIT_IMPORTANCE
    weight = max(0.0, highest - DEFAULT_IMPORTANCE) / (EXPLICIT_IMPORTANCE - DEFAULT_IMPORTANCE)
    asked = sum(_request_weight(text) for text in own)
    total = (
        LENGTH_ADDS * min(len(own) / LONG_TURNS, 1)
        + REQUESTS_ADD * min(asked, 1)
        + EMOTION_ADDS * any(_has_emotion(text) for text in own)
        + (REMEMBER_ADDS if remember else IMPORTANCE_ADDS * weight)
        + CODE_ADDS * any(code_blocks(turn.text) for turn in turns)
    )
    return round(min(total, 1.0), 4)


def _request_weight(text: str) -> float:
    plain = f" {' '.join(tokens_of(fold(text)))} "
    if any(f" {phrase} " in plain for phrase in _REQUESTS):
        return 1.0
    return QUESTION_COUNTS if "?" in text else 0.0


def _has_emotion(text: str) -> bool:
    return not _FEELINGS.isdisjoint(tokens_of(fold(text)))
