"""Token shares of the parts of a prompt, and the estimate of tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from arbor.heartbeat.working_memory import CHARACTERS_PER_TOKEN

_TOKENS_PER_FURTHER_BYTE = 0.4
# Beside the quarter of any character: many tokenizers split numbers and ids into digits.
_TOKENS_PER_DIGIT = 0.75
_DIGITS = b"0123456789"
# Code and JSON: brackets, quotes and operators seldom share a token with a word. Measured with the tokenizer of Llama 2 on sources of
# Python, Markdown and JSON, where the estimate without them was 15 to 25 % low.
_TOKENS_PER_SYMBOL = 0.25
_SYMBOLS = b'{}[]()<>"=;\\/|_`*#$&@^~'
#: The largest share of the model's window that is reserved for the reply.
REPLY_SHARE = 0.25
#: Tokens without which a reply is not worth its call.
LEAST_REPLY = 256
#: The least part of its share that a side keeps in a small window.
LEAST_SCALE = 0.1


class Side(StrEnum):
    """The parts of a prompt with a token share."""

    IDENTITY = "identity"
    MEMORY = "memory"
    WORLD_STATE = "world_state"
    ACTION_HISTORY = "action_history"


#: Tokens (seed 003, 10.6); the remainder is for the reply.
SHARES: Mapping[Side, int] = {
    Side.IDENTITY: 500,
    Side.MEMORY: 2_000,
    Side.WORLD_STATE: 1_500,
    Side.ACTION_HISTORY: 1_000,
}

_SIDE_OF: Mapping[str, Side] = {
    **dict.fromkeys(("identity", "beliefs", "preferences", "capabilities"), Side.IDENTITY),
    **dict.fromkeys(("recent", "relevant", "themes", "held", "working_memory", "experiences"), Side.MEMORY),
    **dict.fromkeys(("tallies", "attempts", "precedents", "publications", "handlers"), Side.ACTION_HISTORY),
    "last_beat": Side.ACTION_HISTORY,
}
#: Short sections that are never cut.
_WHOLE = frozenset(
    {"mark", "timing", "energy", "directive", "mood", "drives", "boundaries", "further_keys", "closing"}
)


def side_of(section: str) -> Side | None:
    """Return the side of a section; None for a section that is never cut."""
    return None if section in _WHOLE else _SIDE_OF.get(section, Side.WORLD_STATE)


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text, by its script.

    About 4 ASCII characters are a token. A character of two bytes in UTF-8 (Cyrillic, Greek, Arabic) counts for two thirds of one, of
    three (Chinese, Japanese, Devanagari) for one, of four (emoji) for one and a half: tokenizers join few of them. A digit is a token,
    and a symbol of code adds a quarter of one.
    """
    encoded = text.encode(errors="surrogatepass")
    digits = len(encoded) - len(encoded.translate(None, _DIGITS))
    symbols = len(encoded) - len(encoded.translate(None, _SYMBOLS))
    further_bytes = len(encoded) - len(text)
    return math.ceil(
        len(text) / CHARACTERS_PER_TOKEN
        + _TOKENS_PER_FURTHER_BYTE * further_bytes
        + _TOKENS_PER_DIGIT * digits
        + _TOKENS_PER_SYMBOL * symbols
    )


def shares(*, window: int, fixed: int, reply: int) -> Mapping[Side, int]:
    """Return the tokens of each side, scaled down for a small window.

    All in tokens: `window` of the model, `fixed` of the unchanging part, `reply` of the longest reply.
    """
    room = room_of(window=window, fixed=fixed, reply=reply)
    wanted = sum(SHARES.values())
    if room >= wanted:
        return SHARES
    scale = max(room / wanted, LEAST_SCALE)
    return {side: int(share * scale) for side, share in SHARES.items()}


def room_of(*, window: int, fixed: int, reply: int) -> int:
    """Return the tokens for all sides together, after the fixed part and the reply."""
    return window - fixed - reply_room(window=window, reply=reply)


def reply_room(*, window: int, reply: int) -> int:
    """Return the tokens that a window has for a reply of at most `reply` tokens."""
    return min(reply, int(window * REPLY_SHARE))
