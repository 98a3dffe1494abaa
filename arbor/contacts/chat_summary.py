"""Summaries of the turns of a conversation that a prompt does not show."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.contacts.chat import RULE_SUMMARY_LENGTH, TURN_SHOWN_LENGTH
from arbor.contacts.chat_view import TurnSummary, TurnView
from arbor.contacts.values import Speaker
from arbor.memory.text.summary import SpokenText, extractive_summary
from arbor.models.token_counts import CountTokens

#: The author of a summary that no model wrote.
RULE = "rule"


def summarize_turns(turns: Sequence[TurnView], *, count: CountTokens) -> TurnSummary:
    """Summarize turns, at least one, by rule: their most central sentences, in order."""
    texts = [SpokenText(speaker=speaker_of(turn), text=turn.text[:TURN_SHOWN_LENGTH]) for turn in turns]
    return TurnSummary(
        text=extractive_summary(texts, longest=RULE_SUMMARY_LENGTH),
        turns=len(turns),
        tokens=sum(count(turn.text) for turn in turns),
        started_at=turns[0].at,
        last_at=turns[-1].at,
        first_id=turns[0].id,
        last_id=turns[-1].id,
        by=RULE,
    )


def speaker_of(turn: TurnView) -> str:
    """Return who speaks in a turn, as the agent sees it."""
    return "you" if turn.speaker is Speaker.AGENT else "they"
