"""Token shares of the parts of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

#: The largest share of the model's window that is reserved for the reply.
REPLY_SHARE = 0.25
#: Tokens without which a reply is not worth its call.
MIN_REPLY = 256
#: The least part of its share that a side keeps in a small window.
MIN_SCALE = 0.1
#: Short sections outside the shares. Boundaries alone are cut, where the prompt would leave no room for a reply.
_WHOLE = frozenset(
    {"mark", "timing", "energy", "directive", "mood", "drives", "boundaries", "further_keys", "closing"}
)


class PromptSide(StrEnum):
    """The parts of a prompt with a token share."""

    IDENTITY = "identity"
    MEMORY = "memory"
    WORLD_STATE = "world_state"
    ACTION_HISTORY = "action_history"


#: Tokens of each side (seed 003, 10.6).
SHARES: Mapping[PromptSide, int] = {
    PromptSide.IDENTITY: 500,
    PromptSide.MEMORY: 2_000,
    PromptSide.WORLD_STATE: 1_500,
    PromptSide.ACTION_HISTORY: 1_000,
}

_SIDE_OF: Mapping[str, PromptSide] = {
    **dict.fromkeys(("identity", "beliefs", "preferences", "capabilities"), PromptSide.IDENTITY),
    **dict.fromkeys(
        ("recent", "relevant", "clusters", "held", "working_memory", "experiences"), PromptSide.MEMORY
    ),
    **dict.fromkeys(
        ("tallies", "attempts", "precedents", "publications", "handlers"), PromptSide.ACTION_HISTORY
    ),
    "last_heartbeat": PromptSide.ACTION_HISTORY,
}


def side_of(section: str) -> PromptSide | None:
    """Return the side of a section; None for a section outside the shares."""
    return None if section in _WHOLE else _SIDE_OF.get(section, PromptSide.WORLD_STATE)


def shares(*, window: int, fixed: int, reply: int) -> Mapping[PromptSide, int]:
    """Return the tokens of each side, scaled down for a small window.

    All in tokens: `window` of the model, `fixed` of the unchanging part, `reply` of the longest reply.
    """
    room = room_of(window=window, fixed=fixed, reply=reply)
    wanted = sum(SHARES.values())
    if room >= wanted:
        return SHARES
    scale = max(room / wanted, MIN_SCALE)
    return {side: int(share * scale) for side, share in SHARES.items()}


def room_of(*, window: int, fixed: int, reply: int) -> int:
    """Return the tokens for all sides together, after the fixed part and the reply."""
    return window - fixed - reply_room(window=window, reply=reply)


def reply_room(*, window: int, reply: int) -> int:
    """Return the tokens that a window has for a reply of at most `reply` tokens."""
    return min(reply, int(window * REPLY_SHARE))


def least_reply(*, window: int, reply: int) -> int:
    """Return the tokens that a prompt leaves to the reply, whatever must be cut: half of the reply's share."""
    return max(reply_room(window=window, reply=reply) // 2, MIN_REPLY)
