"""The message of a further round trip, clipped to the room that the window of its model has left."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from arbor.heartbeat.prompts.cuts import CutContext
from arbor.heartbeat.replies.turns import BROUGHT_LENGTH, follow_up_text
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.windows import count_tokens, max_prompt_tokens, quotable

#: The source of what actions brought, in audit events.
RESULTS = "results"
#: The share of the estimated room that results get once they did not fit.
_MARGIN = 0.9
#: More characters than any results have.
_UNLIMITED = 10**9
# How often results are shortened: once is too little where the longest have the fewest tokens.
_TRIES = 4


class FollowUpMessage(NamedTuple):
    """A message with the results of actions, empty if it has no room, and what it leaves out of them."""

    text: str
    cut: CutContext


def follow_up_message(heartbeat: HeartbeatState, *, spent: int) -> FollowUpMessage:
    """Return the message after `spent` tokens of prompts and replies, without text if the model has no room for it."""
    message = partial(
        follow_up_text,
        heartbeat.situation_now,
        heartbeat.present.results,
        turn=heartbeat.turn + 1,
        most=heartbeat.turns_allowed,
        nonce=heartbeat.mark,
    )
    lengths = [len(result.brought) for result in heartbeat.present.results]
    whole = message(room=_UNLIMITED)
    room, left = min(quotable(heartbeat, spent), BROUGHT_LENGTH), max_prompt_tokens(heartbeat) - spent
    text = message(room=room)
    tokens = count_tokens(heartbeat, text)
    for _ in range(_TRIES):
        if not 0 < left < tokens:
            break
        # Texts of digits, symbols or other scripts take more tokens than their length says.
        room = int(room * left / tokens * _MARGIN)
        text = message(room=room)
        tokens = count_tokens(heartbeat, text)
    fits = tokens <= left
    shown = tokens if fits else 0
    lost = count_tokens(heartbeat, whole) - shown if text != whole or not fits else 0
    cut = CutContext(
        removed={RESULTS: lost} if lost > 0 else {},
        entries={} if fits else {RESULTS: sum(length > 0 for length in lengths)},
        left={RESULTS: shown},
    )
    return FollowUpMessage(text if fits else "", cut)
