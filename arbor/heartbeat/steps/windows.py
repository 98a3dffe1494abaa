"""Room in the window of a heartbeat's model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arbor.heartbeat.prompts.cuts import without_room
from arbor.heartbeat.prompts.prompt import retry_note
from arbor.heartbeat.prompts.token_shares import LEAST_REPLY, reply_room, room_of
from arbor.heartbeat.state import HeartbeatState
from arbor.models.handles import is_reflex
from arbor.models.ports import PromptMessage
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import CHARACTERS_PER_TOKEN, estimate_tokens
from arbor.models.windows import PromptLimits, bounded_ratio, prompt_limits, window_of

#: Tokens of a further message beside the texts that it quotes.
MESSAGE_OVERHEAD = 150
#: The least characters of an unreadable reply that are quoted.
LEAST_QUOTED = 400


def limits_of(heartbeat: HeartbeatState, models: Iterable[str]) -> PromptLimits:
    """Return the limits of a prompt for these models, in estimated tokens."""
    return prompt_limits(
        models,
        otherwise=heartbeat.rules.model_context,
        reply_tokens=heartbeat.rules.reply_tokens,
        ratios=heartbeat.routing.ratios,
        tokenizers=_tokenizers(heartbeat),
    )


def counter_of(heartbeat: HeartbeatState, limits: PromptLimits) -> CountTokens:
    """Return how the tokens of a prompt with these limits are counted."""
    return heartbeat.rules.tokenizers.get(limits.tokenizer, estimate_tokens)


def count_tokens(heartbeat: HeartbeatState, text: str) -> int:
    """Return the tokens of a text that follows the prompt, counted as those of the prompt."""
    return counter_of(heartbeat, limits_of(heartbeat, [heartbeat.model]))(text)


def _tokenizers(heartbeat: HeartbeatState) -> Mapping[str, CountTokens]:
    """Return the tokenizers that may count: before the prompt all, then that which counted the prompt."""
    known, terms = heartbeat.rules.tokenizers, heartbeat.situation.terms
    if terms is None or not known:
        return known
    return {terms.tokenizer: known[terms.tokenizer]} if terms.tokenizer in known else {}


def max_reply_tokens(heartbeat: HeartbeatState, asked_tokens: int) -> int:
    """Return the limit of a reply to a prompt of `asked_tokens`, in the tokens of its model."""
    window = window_of(heartbeat.model, otherwise=heartbeat.rules.model_context)
    exact = limits_of(heartbeat, [heartbeat.model]).tokenizer
    ratio = 1.0 if exact else bounded_ratio(heartbeat.routing.ratios.get(heartbeat.model, 1.0))
    # A prompt with nothing left to leave out may take a part of the reply's share.
    left = max(window - math.ceil(asked_tokens * ratio), LEAST_REPLY)
    return min(reply_room(window=window, reply=heartbeat.rules.reply_tokens), left)


def max_prompt_tokens(heartbeat: HeartbeatState) -> int:
    """Return the most estimated tokens of a prompt that leave the reply its share of the window."""
    limits = limits_of(heartbeat, [heartbeat.model])
    return room_of(window=limits.window, fixed=0, reply=limits.reply_tokens)


def quotable(heartbeat: HeartbeatState, asked_tokens: int) -> int:
    """Return the characters that a further message may quote after a prompt of `asked_tokens`."""
    room = max_prompt_tokens(heartbeat) - asked_tokens - MESSAGE_OVERHEAD
    return max(room, 0) * CHARACTERS_PER_TOKEN


def fault_without_room(
    heartbeat: HeartbeatState, asked_tokens: int, sections: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return why the window has no room for a prompt of `asked_tokens` and a reply; empty if it has."""
    window = limits_of(heartbeat, [heartbeat.model]).window
    if is_reflex(heartbeat.model) or asked_tokens + LEAST_REPLY <= window:
        return ""
    sizes = {section["name"]: section["tokens"] for section in sections}
    return without_room(model=heartbeat.model, window=window, tokens=asked_tokens, sizes=sizes)


def retry_messages(heartbeat: HeartbeatState, asked_tokens: int) -> list[PromptMessage]:
    """Return the messages after an unreadable reply, which is quoted as far as the window has room."""
    note = retry_note(heartbeat.unreadable)
    room = max(quotable(heartbeat, asked_tokens + count_tokens(heartbeat, note)), LEAST_QUOTED)
    return [
        PromptMessage(role="assistant", content=heartbeat.reply_text[:room] or "(nothing)"),
        PromptMessage(role="user", content=note),
    ]
