"""Fit a conversation's turn into a model's window, in the order of seed 001 ("Context Window Management").

Turns beyond the latest twenty are summarized before (`arbor.contacts.chat_summary`). Skills and the rest of the system part are never cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arbor.contacts.chat import SUMMARY_SHOWN_LENGTH, TURN_SHOWN_LENGTH
from arbor.contacts.chat_summary import summarize_turns
from arbor.contacts.chat_view import ChatView, TurnView
from arbor.heartbeat.prompts.fitting import removed_tokens
from arbor.heartbeat.prompts.reductions import CLIPPED_MESSAGE
from arbor.models.token_counts import CountTokens
from arbor.quotations import RenderedSection, line

#: Tokens between two sections.
_SEPARATOR_TOKENS = 1

# Section, field of the view, and the entries that stay. The first two are the seed's: memories from 5 to 3, passages from 5 to 2. What
# follows is for windows that are smaller still: stored code, older turns, and the less important parts of the self.
_REDUCTIONS = (
    ("relevant", "relevant", 3),
    ("passages", "passages", 2),
    ("code", "code", 1),
    ("conversation", "turns", 4),
    ("code", "code", 0),
    ("preferences", "preferences", 0),
    ("beliefs", "beliefs", 2),
    ("passages", "passages", 0),
    ("conversation", "turns", 1),
    ("relevant", "relevant", 1),
    ("beliefs", "beliefs", 0),
    ("identity", "aspects", 1),
    ("conversation", "turns", 0),
    ("conversation", "summaries", 0),
    ("relevant", "relevant", 0),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedTurn:
    """The sections of a turn that fit, and by section the omitted entries and the removed tokens."""

    sections: Sequence[RenderedSection]
    cut: Mapping[str, int]
    removed: Mapping[str, int]


def fit_turn(
    view: ChatView,
    room: int,
    render: Callable[[ChatView], Sequence[RenderedSection]],
    count: CountTokens,
) -> FittedTurn:
    """Render as much of the turn as fits into `room` tokens. Older turns that do not fit are summarized by rule."""
    cut: Counter[str] = Counter()
    whole = sections = render(view)
    left_out: list[TurnView] = []
    condensed = view
    for section, name, least in _REDUCTIONS:
        while section_tokens(sections, count) > room and len(getattr(condensed, name)) > least:
            if name == "turns":
                left_out.append(condensed.turns[0])
                condensed = _without_oldest_turn(condensed, view, left_out, count)
            else:
                entries = getattr(condensed, name)
                # Summaries are in the order of time, all others have the best first.
                shorter = entries[1:] if name == "summaries" else entries[:-1]
                condensed = condensed.model_copy(update={name: shorter})
            cut[section] += 1
            sections = render(condensed)
    if section_tokens(sections, count) > room:
        message = line(condensed.message, CLIPPED_MESSAGE)
        sections = render(condensed.model_copy(update={"message": message}))
    removed = removed_tokens(whole, sections, count)
    if hidden := _hidden_tokens(view, count):
        removed["conversation"] = removed.get("conversation", 0) + hidden
    return FittedTurn(sections=sections, cut=cut, removed=removed)


def section_tokens(sections: Sequence[RenderedSection], count: CountTokens) -> int:
    """Return the tokens of sections together."""
    return sum(count(section.text) + _SEPARATOR_TOKENS for section in sections if section.text)


def _hidden_tokens(view: ChatView, count: CountTokens) -> int:
    """Return the tokens that no window would show: of the turns before the latest, less their summaries, and of the ends of long turns."""
    summaries = sum(count(line(summary.text, SUMMARY_SHOWN_LENGTH)) for summary in view.summaries)
    ends = sum(
        max(count(turn.text) - count(line(turn.text, TURN_SHOWN_LENGTH)), 0)
        for turn in view.turns
        if len(turn.text) > TURN_SHOWN_LENGTH
    )
    return max(view.earlier_tokens - summaries, 0) + ends


def _without_oldest_turn(
    condensed: ChatView, view: ChatView, left_out: Sequence[TurnView], count: CountTokens
) -> ChatView:
    """Return the view without its oldest turn, and with a summary of all turns that were left out."""
    return condensed.model_copy(
        update={
            "turns": condensed.turns[1:],
            "earlier": condensed.earlier + 1,
            "summaries": [*view.summaries, summarize_turns(left_out, count=count)],
        }
    )
