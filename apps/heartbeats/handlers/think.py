"""Think: the prompt, the model that is asked, and its reply."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.heartbeats.handlers.terms import on_record
from apps.heartbeats.models import CallStatus
from apps.heartbeats.services.asked import request_json, request_of, sections_of
from apps.providers import default_model
from apps.tenants.packing import unpack
from apps.tenants.statements import fetch
from arbor.errors import ModelTimeout, ModelUnavailable, ReplyInvalid
from arbor.heartbeat.context_budget import estimate_tokens
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.prompt import build_prompt, retry_note
from arbor.heartbeat.reply_schema import SCHEMA_NAME, asked_keys
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.tiers import ThinkTier, classify_think, models_of, think_context
from arbor.heartbeat.turns import within_beat
from arbor.models.handles import REFLEX
from arbor.models.ports import CallPurpose, Message, ModelRequest
from arbor.models.windows import window_of
from arbor.pipeline.engine import Context, NodeResult, Outcome, Phase, Suspension

#: What ends a call without a word about the question: another model may answer it.
OUT_OF_REACH = frozenset({ModelUnavailable.__name__, ModelTimeout.__name__})
#: A beat's decision wants some variety, and a reply that can be read.
TEMPERATURE = 0.7


class BuildPrompt:
    """Chooses how hard to think, and renders the situation as a prompt that fits the model."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the models to ask, the prompt, and its sections with their sizes, into the context."""
        situation: Situation = context["situation"]
        tier, models = _route(situation, context["routing"])
        situation = _asking(situation, models[0])
        # Nobody outside can guess the mark, so no memory can close its own data block and speak as the prompt.
        mark = secrets.token_hex(8)
        # Whichever of them is asked in the end, it takes the prompt.
        window = min(window_of(model, otherwise=settings.ARBOR_MODEL_CONTEXT) for model in models)
        prompt = build_prompt(
            situation,
            context["character"],
            nonce=mark,
            window=window,
            reply_tokens=settings.ARBOR_MODEL_MAX_TOKENS,
        )
        situation = _taking_in(situation, prompt.percepts)
        sections = [
            {"name": section.name, "text": section.text, "tokens": section.tokens, "cut": section.cut}
            for section in prompt.sections
        ]
        return NodeResult(
            updates={
                "prompt": {"system": prompt.system, "user": prompt.user, "sections": sections},
                "character": None,
                # Whole from now on: it is stored with the call, and not again when the beat ends.
                "situation": on_record({**context, "situation": situation}, window=window),
                "mark": mark,
                "turn": 1,
                "model": models[0],
                "models_left": list(models[1:]),
                "record": {**context["record"], "tier": tier.value, "model": models[0]},
            }
        )


def _taking_in(situation: Situation, shown: Collection[str]) -> Situation:
    """Return the situation with what its prompt shows of what reached the agent: the rest waits for the next beat."""
    if len(shown) == len(situation.percepts):
        return situation
    return situation.model_copy(
        update={
            "percepts": [each for each in situation.percepts if each.id in shown],
            "waiting": [each for each in situation.percepts if each.id not in shown],
            "crossed": [each for each in situation.crossed if each.about in shown],
        }
    )


def _route(situation: Situation, routing: dict[str, Any]) -> tuple[ThinkTier, tuple[str, ...]]:
    """Return the tier of thinking and its models; a day's budget that runs low makes it cheaper."""
    tier = classify_think(think_context(situation)).lowered(situation.degradation.tiers_down)
    models = models_of(
        tier,
        policy=routing["tiers"],
        own=routing["own"],
        installed=settings.ARBOR_TIER_MODELS,
        default=default_model(),
    )
    return tier, models


def _asking(situation: Situation, model: str) -> Situation:
    """Return the situation, which says whether a language model is asked at all."""
    is_reflex = model.startswith(f"{REFLEX}/")
    if is_reflex == situation.model_is_reflex:
        return situation
    return situation.model_copy(update={"model_is_reflex": is_reflex})


class Think:
    """Asks the model, and waits."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Suspend on a call; after a reply that could not be read, the model is told what was wrong with it."""
        if context["prompt"] is not None:
            system, sections = context["prompt"]["system"], context["prompt"]["sections"]
            messages = [Message(role="user", content=context["prompt"]["user"])]
        else:
            system, messages, sections = _asked_before(context)
        if context.get("unreadable"):
            messages += [
                Message(role="assistant", content=context["reply_text"] or "(nothing)"),
                Message(role="user", content=retry_note(context["unreadable"])),
            ]
        situation: Situation = context["situation"]
        request = ModelRequest(
            purpose=CallPurpose.THINK,
            system=system,
            messages=tuple(messages),
            schema_name=SCHEMA_NAME,
            max_tokens=settings.ARBOR_MODEL_MAX_TOKENS,
            temperature=TEMPERATURE,
            # Only the reflex policy reads the situation itself.
            context=situation.model_dump(mode="json") if situation.model_is_reflex else {},
        )
        # The schema is made again where it is sent: it is the largest part, and the same from beat to beat.
        asked = request_json(request, allowed=context["allowed"], keys=asked_keys(situation))
        payload = {"model": context["model"], "request": asked, "sections": sections}
        # The call keeps the prompt: it need not be stored, and read, with the checkpoint too.
        updates = {"prompt": None, "asked_tokens": sum(section["tokens"] for section in sections)}
        return NodeResult(updates=updates, suspend=Suspension(kind=CallPurpose.THINK.value, payload=payload))

    def resume(self, context: Context, result: dict[str, Any]) -> NodeResult:
        """Take the reply; a call that failed fails the heartbeat, and nothing is made up in its place.

        A model that was out of reach is not asked again; the next one of its tier is, if there is one.
        """
        if result["status"] == CallStatus.COMPLETE:
            return NodeResult(
                updates={"reply_text": result["text"], "call_id": result["call_id"], "failure": None}
            )
        reason = f"{result['error_kind']}: {result['error']}"
        failure = {"failure": {"reason": reason}}
        if result["error_kind"] not in OUT_OF_REACH or not context["models_left"]:
            return NodeResult(outcome=Outcome.FAILURE, updates=failure)
        updates = next_model(context)
        said = f"{context['model']} is out of reach ({reason}); {updates['model']} is asked"
        return NodeResult(outcome=Outcome.RETRY, updates={**failure, **updates}, changed=(said,))


def next_model(context: Context) -> dict[str, Any]:
    """Return what the context holds once the beat asks the next model of its tier; there must be one."""
    following, *left = context["models_left"]
    return {
        "model": following,
        "models_left": left,
        "situation": _asking(context["situation"], following),
        "record": {**context["record"], "model": following},
    }


# The first call, or the one that was answered last.
_ASKED = """
SELECT request, sections, reply FROM heartbeats_externalcall
WHERE tenant_id = %(tenant)s AND heartbeat_id = %(beat)s AND purpose = %(purpose)s
    AND (%(call)s::uuid IS NULL OR id = %(call)s::uuid)
ORDER BY requested_at LIMIT 1
"""


def _asked_before(context: Context) -> tuple[str, list[Message], list[dict[str, Any]]]:
    """Return what the heartbeat has asked so far: its prompt, or the conversation that this turn goes on with."""
    answered = context.get("answered")
    ((asked, parts, reply),) = fetch(
        _ASKED, beat=UUID(context["heartbeat_id"]), purpose=CallPurpose.THINK.value, call=answered
    )
    stored = unpack(asked)
    request, before = request_of(stored), sections_of(unpack(parts), stored)
    if not answered:
        return request.system, [request.messages[0]], before
    messages = [
        *request.messages,
        Message(role="assistant", content=reply),
        Message(role="user", content=context["follow_up"]),
    ]
    sections = [
        {"name": "conversation", "text": "", "tokens": context["said_tokens"], "cut": 0},
        {
            "name": "follow_up",
            "text": context["follow_up"],
            "tokens": estimate_tokens(context["follow_up"]),
            "cut": 0,
        },
    ]
    return request.system, messages, sections


class Parse:
    """Reads the reply."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the reply and what of it was not used into the context; ask again when there is nothing to read."""
        try:
            parsed = parse_reply(context["reply_text"])
        except ReplyInvalid as error:
            tries = context.get("invalid_replies", 0) + 1
            return NodeResult(
                outcome=Outcome.RETRY,
                updates={
                    "invalid_replies": tries,
                    "unreadable": str(error),
                    "failure": {"reason": f"no usable reply in {tries} tries: {error}"},
                },
            )
        reply, left_over = within_beat(context.get("earlier_reply"), parsed.reply)
        dropped = [
            {"path": each.path, "value": each.value, "reason": each.reason}
            for each in (*parsed.dropped, *left_over)
        ]
        return NodeResult(
            updates={
                "reply": reply,
                "failure": None,
                "unreadable": None,
                "invalid_replies": 0,
                # What the turns before it did is kept apart; here stands what this one does.
                **({"apart": True} if context.get("turn", 1) > 1 else {}),
                "record": {
                    **context["record"],
                    **({"actions": [], "goal_changes": []} if context.get("turn", 1) > 1 else {}),
                    "dropped": dropped,
                    "repairs": list(parsed.repairs),
                    "reasoning": reply.thinking,
                },
            }
        )
