"""Room in the window of a heartbeat's model, and what is cut to fit into it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from arbor.errors import ContextTooLarge
from arbor.heartbeat.effects import AuditNote
from arbor.heartbeat.needs import Question
from arbor.heartbeat.pacing import next_without_room
from arbor.heartbeat.prompts.fitting import TRUNCATED, CutContext, no_room_fault
from arbor.heartbeat.prompts.prompt import retry_note
from arbor.heartbeat.prompts.token_shares import MIN_REPLY, reply_room, room_of
from arbor.heartbeat.replies.round_trips import BROUGHT_LENGTH, follow_up_text
from arbor.heartbeat.state import HeartbeatState
from arbor.models.handles import is_reflex
from arbor.models.ports import CallPurpose, PromptMessage
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import CHARACTERS_PER_TOKEN, estimate_tokens
from arbor.models.windows import PromptLimits, bounded_ratio, prompt_limits, window_of
from arbor.pipeline.engine import NodeResult, Suspension
from arbor.values import replace

#: Tokens of a further message beside the texts that it quotes.
MESSAGE_OVERHEAD = 150
#: The fewest characters of an unreadable reply that are quoted.
MIN_QUOTED = 400
#: The source of what actions brought, in audit records.
RESULTS = "results"
#: The share of the estimated room that results get once they did not fit.
_MARGIN = 0.9
#: More characters than any results have.
_UNLIMITED = 10**9
#: The beginning of the reason of a heartbeat whose prompt left no room for a reply.
NO_ROOM = ContextTooLarge.__name__
# How often results are shortened: once is too little where the longest have the fewest tokens.
_TRIES = 4


def limits_of(heartbeat: HeartbeatState, models: Iterable[str]) -> PromptLimits:
    """Return the limits of a prompt for these models, in estimated tokens or in those of a tokenizer that they share."""
    return prompt_limits(
        models,
        otherwise=heartbeat.rules.model_context,
        reply_tokens=heartbeat.rules.reply_tokens,
        ratios=heartbeat.routing.ratios,
        tokenizers=_tokenizers(heartbeat),
    )


def counter_of(heartbeat: HeartbeatState, limits: PromptLimits) -> CountTokens:
    """Return the function that counts the tokens of a prompt with these limits."""
    return heartbeat.rules.tokenizers.get(limits.tokenizer, estimate_tokens)


def count_tokens(heartbeat: HeartbeatState, text: str) -> int:
    """Return the tokens of a text that follows the prompt, counted as those of the prompt."""
    return counter_of(heartbeat, limits_of(heartbeat, [heartbeat.model]))(text)


def spent_tokens(heartbeat: HeartbeatState) -> int:
    """Return the tokens of the conversation so far: of the last prompt and of the reply to it."""
    return heartbeat.asked_tokens + count_tokens(heartbeat, heartbeat.reply_text)


def _tokenizers(heartbeat: HeartbeatState) -> Mapping[str, CountTokens]:
    """Return the tokenizers that may count: all before the prompt is built, then the one that counted it."""
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
    left = max(window - math.ceil(asked_tokens * ratio), MIN_REPLY)
    return min(reply_room(window=window, reply=heartbeat.rules.reply_tokens), left)


def max_prompt_tokens(heartbeat: HeartbeatState) -> int:
    """Return the most tokens of a prompt, counted as its own, that leave the reply its share of the window."""
    limits = limits_of(heartbeat, [heartbeat.model])
    return room_of(window=limits.window, fixed=0, reply=limits.reply_tokens)


def quotable(heartbeat: HeartbeatState, asked_tokens: int) -> int:
    """Return the characters that a further message may quote after a prompt of `asked_tokens`."""
    room = max_prompt_tokens(heartbeat) - asked_tokens - MESSAGE_OVERHEAD
    return max(room, 0) * CHARACTERS_PER_TOKEN


def suspended(
    heartbeat: HeartbeatState, purpose: CallPurpose, question: Question
) -> NodeResult[HeartbeatState]:
    """Return the result of a step that waits for a call."""
    return NodeResult(state=heartbeat, suspend=Suspension(kind=purpose.value, payload=question))


def further_sections(
    heartbeat: HeartbeatState, spent: int, name: str, text: str
) -> tuple[dict[str, Any], ...]:
    """Return the sections of a prompt that is a conversation of `spent` tokens and one further message."""
    tokens = count_tokens(heartbeat, text)
    return (
        {"name": "conversation", "text": "", "tokens": spent, "cut": 0},
        {"name": name, "text": text, "tokens": tokens, "cut": 0},
    )


def fault_without_room(
    heartbeat: HeartbeatState, asked_tokens: int, sections: Sequence[Mapping[str, Any]]
) -> str:
    """Return why the window has no room for a prompt of `asked_tokens` and a reply; empty if it has."""
    window = limits_of(heartbeat, [heartbeat.model]).window
    if is_reflex(heartbeat.model) or asked_tokens + MIN_REPLY <= window:
        return ""
    sizes = {section["name"]: section["tokens"] for section in sections}
    fault = no_room_fault(model=heartbeat.model, window=window, tokens=asked_tokens, sizes=sizes)
    return f"{NO_ROOM}: {fault}"


def with_longer_wait(heartbeat: HeartbeatState) -> HeartbeatState:
    """Return the state of a heartbeat without room in its window; the next one is later after each such failure in a row."""
    if heartbeat.opening is None:
        # The heartbeat itself had room, a further round trip has none.
        return heartbeat
    recent = heartbeat.opening.recent_activity.heartbeats
    earlier = (past.reason.startswith(NO_ROOM) for past in recent if past.status != "skipped")
    following = next_without_room(
        heartbeat.schedule,
        now=heartbeat.situation.environment.now,
        failures=1 + sum(itertools.takewhile(bool, earlier)),
        shift=heartbeat.shift,
    )
    return replace(heartbeat, next=following)


def retry_messages(heartbeat: HeartbeatState, asked_tokens: int) -> list[PromptMessage]:
    """Return the messages after an unreadable reply, which is quoted as far as the window has room."""
    note = retry_note(heartbeat.unreadable)
    room = max(quotable(heartbeat, asked_tokens + count_tokens(heartbeat, note)), MIN_QUOTED)
    return [
        PromptMessage(role="assistant", content=heartbeat.reply_text[:room] or "(nothing)"),
        PromptMessage(role="user", content=note),
    ]


def follow_up_message(heartbeat: HeartbeatState, *, spent: int) -> tuple[str, CutContext]:
    """Return the message with the results of actions after `spent` tokens, and what it leaves out of them.

    The message is empty if the model has no room for it.
    """
    message = partial(
        follow_up_text,
        heartbeat.situation_now,
        heartbeat.present.results,
        round_trip=heartbeat.round_trip + 1,
        most=heartbeat.round_trips_allowed,
        nonce=heartbeat.mark,
        dropped=heartbeat.present.dropped,
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
    return (text if fits else ""), cut


def with_cuts_audited(heartbeat: HeartbeatState, cut: CutContext, *, window: int) -> HeartbeatState:
    """Return the state with the audit record of a cut to a window.

    Without a cut, and for the reflex policy, which reads the whole situation, the state is unchanged.
    """
    if not cut.removed or heartbeat.situation.model_is_reflex:
        return heartbeat
    number, model = heartbeat.situation.heartbeat_number, heartbeat.model
    note = AuditNote(
        action=TRUNCATED,
        message=f"the prompt of heartbeat {number} was cut to the window of {model}: {cut.in_words}",
        detail={
            "heartbeat": str(heartbeat.heartbeat_id),
            "number": number,
            **cut.to_json(model=model, window=window),
        },
    )
    return heartbeat.with_effects(audit=[note])
