"""The message of a further round trip, clipped to the room that the window of its model has left."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from arbor.heartbeat.replies.turns import BROUGHT_LENGTH, follow_up_text
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.windows import count_tokens, max_prompt_tokens, quotable

#: The share of the estimated room that results get once they did not fit.
_MARGIN = 0.9
# How often results are shortened: once is too little where the longest have the fewest tokens.
_TRIES = 4


class FollowUpMessage(NamedTuple):
    """A message with the results of actions, and the tokens that were clipped from them for want of room."""

    text: str
    clipped: int


def follow_up_message(heartbeat: HeartbeatState, *, spent: int) -> FollowUpMessage | None:
    """Return the message after `spent` tokens of prompts and replies; None if the model has no room for it."""
    message = partial(
        follow_up_text,
        heartbeat.situation_now,
        heartbeat.present.results,
        turn=heartbeat.turn + 1,
        most=heartbeat.turns_allowed,
        nonce=heartbeat.mark,
    )
    room, left = quotable(heartbeat, spent), max_prompt_tokens(heartbeat) - spent
    text = message(room=room)
    tokens = count_tokens(heartbeat, text)
    for _ in range(_TRIES):
        if not 0 < left < tokens:
            break
        # Texts of digits, symbols or other scripts take more tokens than their length says.
        room = int(room * left / tokens * _MARGIN)
        text = message(room=room)
        tokens = count_tokens(heartbeat, text)
    if tokens > left:
        return None
    clipped = count_tokens(heartbeat, message()) - tokens if room < BROUGHT_LENGTH else 0
    return FollowUpMessage(text, clipped)
