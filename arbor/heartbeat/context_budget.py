"""How many tokens each side of a situation may take in a prompt (seed 003, 10.6).

The seed's figures are what a side has in a small window; what other sides and a larger window leave over, it may use
(`arbor.heartbeat.fitting`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from arbor.heartbeat.working_memory import CHARACTERS_PER_TOKEN

#: The reply is never planned with more than this share of the model's window.
REPLY_SHARE = 0.25
#: However small the window, a side keeps this much of its share: a prompt of nothing decides nothing.
LEAST_SCALE = 0.1


class Side(StrEnum):
    """The sides of a prompt that have a share of their own."""

    IDENTITY = "identity"
    MEMORY = "memory"
    WORLD_STATE = "world_state"
    ACTION_HISTORY = "action_history"


#: Tokens (seed 003, 10.6). Its system prompt (about 2,000), the actions and the format never change, and the reply has
#: the remainder.
SHARES: Mapping[Side, int] = {
    Side.IDENTITY: 500,
    Side.MEMORY: 2_000,
    Side.WORLD_STATE: 1_500,
    Side.ACTION_HISTORY: 1_000,
}

_SIDE_OF: Mapping[str, Side] = {
    **dict.fromkeys(("identity", "beliefs", "preferences", "capabilities"), Side.IDENTITY),
    **dict.fromkeys(("recent", "relevant", "themes", "held", "working_memory", "experiences"), Side.MEMORY),
    "last_beat": Side.ACTION_HISTORY,
}
#: Sections of a few lines, which every beat needs whole.
_WHOLE = frozenset(
    {"mark", "timing", "energy", "directive", "mood", "drives", "boundaries", "further_keys", "closing"}
)


def side_of(section: str) -> Side | None:
    """Return the side that a section of the changing part belongs to; None for one that is never cut."""
    return None if section in _WHOLE else _SIDE_OF.get(section, Side.WORLD_STATE)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text takes."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def shares(*, window: int, fixed: int, reply: int) -> Mapping[Side, int]:
    """Return each side's tokens: the seed's, or as much smaller as a small window wants it.

    `window` is what the model takes in all, `fixed` what the unchanging part takes, `reply` what a reply may take.
    """
    room = room_of(window=window, fixed=fixed, reply=reply)
    wanted = sum(SHARES.values())
    if room >= wanted:
        return SHARES
    scale = max(room / wanted, LEAST_SCALE)
    return {side: int(share * scale) for side, share in SHARES.items()}


def room_of(*, window: int, fixed: int, reply: int) -> int:
    """Return the tokens that all sides may take together; the reply has its own before them."""
    return window - fixed - min(reply, int(window * REPLY_SHARE))
