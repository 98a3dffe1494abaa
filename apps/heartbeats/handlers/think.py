"""Decide: the prompt, the model's reply, and which of the proposed actions run."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings

from apps.contacts.services.limits import seen_refusals
from apps.heartbeats.handlers.observe import boundaries_in, budget_in, model_in, own_boundaries
from apps.heartbeats.models import CallStatus, ExternalCall
from apps.heartbeats.services.asked import request_json, request_of, sections_of
from apps.heartbeats.services.boundary_vectors import example_vectors
from apps.memories.services.embedding import embed_for_storage, embed_query
from apps.memories.services.recall import meaning_texts
from arbor.errors import EmbeddingFailed, ReplyInvalid
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import Decision, decide, texts_to_search, texts_to_store
from arbor.heartbeat.guarding import within_boundaries
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.prompt import build_prompt, retry_note
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.reply_schema import SCHEMA_NAME, asked_keys
from arbor.heartbeat.situation import Situation
from arbor.models.ports import CallPurpose, Message, ModelRequest
from arbor.pipeline.engine import Context, NodeResult, Outcome, Phase, Suspension

log = structlog.get_logger(__name__)

#: A beat's decision wants some variety, and a reply that can be read.
TEMPERATURE = 0.7


class BuildPrompt:
    """Renders the situation as a prompt."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the prompt, and its sections with their sizes, into the context."""
        # Nobody outside can guess the nonce, so no memory can close its own data block and speak as the prompt.
        prompt = build_prompt(context["situation"], context["character"], nonce=secrets.token_hex(8))
        sections = [
            {"name": section.name, "text": section.text, "tokens": section.tokens}
            for section in prompt.sections
        ]
        return NodeResult(
            updates={
                "prompt": {"system": prompt.system, "user": prompt.user, "sections": sections},
                "character": None,
            }
        )


class Think:
    """Asks the model, and waits."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Suspend on a call; after a reply that could not be read, the model is told what was wrong with it."""
        prompt = context["prompt"] or _asked_before(UUID(context["heartbeat_id"]))
        messages = [Message(role="user", content=prompt["user"])]
        if context.get("unreadable"):
            messages += [
                Message(role="assistant", content=context["reply_text"] or "(nothing)"),
                Message(role="user", content=retry_note(context["unreadable"])),
            ]
        situation: Situation = context["situation"]
        request = ModelRequest(
            purpose=CallPurpose.THINK,
            system=prompt["system"],
            messages=tuple(messages),
            schema_name=SCHEMA_NAME,
            max_tokens=settings.ARBOR_MODEL_MAX_TOKENS,
            temperature=TEMPERATURE,
            # Only the reflex policy reads the situation itself.
            context=situation.model_dump(mode="json") if situation.model_is_reflex else {},
        )
        # The schema is made again where it is sent: it is the largest part, and the same from beat to beat.
        asked = request_json(request, allowed=context["allowed"], keys=asked_keys(situation))
        payload = {"model": context["model"], "request": asked, "sections": prompt["sections"]}
        # The call keeps the prompt: it need not be stored, and read, with the checkpoint too.
        return NodeResult(
            updates={"prompt": None}, suspend=Suspension(kind=CallPurpose.THINK.value, payload=payload)
        )

    def resume(self, context: Context, result: dict[str, Any]) -> NodeResult:
        """Take the reply; a call that failed fails the heartbeat, and nothing is made up in its place."""
        if result["status"] != CallStatus.COMPLETE:
            reason = f"{result['error_kind']}: {result['error']}"
            return NodeResult(outcome=Outcome.FAILURE, updates={"failure": {"reason": reason}})
        return NodeResult(updates={"reply_text": result["text"]})


def _asked_before(heartbeat_id: UUID) -> dict[str, Any]:
    """Return the prompt of the heartbeat, from its first call."""
    call = ExternalCall.objects.filter(heartbeat_id=heartbeat_id).earliest("requested_at")
    request = request_of(call.request)
    sections = sections_of(call.sections, call.request)
    return {"system": request.system, "user": request.messages[0].content, "sections": sections}


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
        dropped = [{"path": each.path, "value": each.value, "reason": each.reason} for each in parsed.dropped]
        return NodeResult(
            updates={
                "reply": parsed.reply,
                "failure": None,
                "record": {
                    **context["record"],
                    "dropped": dropped,
                    "repairs": list(parsed.repairs),
                    "reasoning": parsed.reply.thinking,
                },
            }
        )


class Decide:
    """Chooses which of the proposed actions run: known, permitted, well-formed, affordable."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the decisions into the context."""
        reply: Reply = context["reply"]
        situation: Situation = context["situation"]
        decisions = decide(
            reply.actions,
            registry=ACTIONS,
            allowed=context["allowed"],
            energy=situation.energy,
            budget=budget_in(context),
            missing=context.get("missing", {}),
            cooling=seen_refusals(situation.environment),
            guarded=partial(within_boundaries, boundaries=boundaries_in(context), vectors={}),
        )
        queries = [str(each.params["query"]) for each in decisions if each.runs and each.action == "recall"]
        meanings = meaning_texts(
            agent_id=UUID(context["agent_id"]),
            texts=queries,
            now=situation.environment.now,
        )
        return NodeResult(updates={"decisions": list(decisions), "meanings": meanings})


class Embed:
    """Embeds what the actions will search for and store: outside any transaction."""

    phase = Phase.OUTSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the vectors by text into the context; where there is none, words must do until upkeep catches up."""
        decisions: list[Decision] = context["decisions"]
        tenant_id, model = UUID(context["tenant_id"]), model_in(context)
        searched = texts_to_search(decisions)
        stored = texts_to_store(decisions, context["reply"])
        vectors: dict[str, list[float]] = {}
        if searched:
            meanings = [context["meanings"].get(text, text) for text in searched]
            try:
                found = embed_query(tenant_id=tenant_id, texts=meanings, model=model)
                vectors |= {text: vector.tolist() for text, vector in zip(searched, found, strict=True)}
            except EmbeddingFailed as error:
                log.warning("acting_by_words_alone", agent_id=context["agent_id"], error=str(error))
        if stored:
            made = embed_for_storage(tenant_id=tenant_id, texts=stored, model=model)
            if made is not None:
                vectors |= {text: vector.tolist() for text, vector in zip(stored, made, strict=True)}
        # What crosses a boundary in other words than its own is seen only now, by its meaning; what it would have cost
        # stays unspent.
        examples = example_vectors(tenant_id=tenant_id, model=model, own=own_boundaries(context))
        guarded = [within_boundaries(each, boundaries_in(context), examples | vectors) for each in decisions]
        return NodeResult(updates={"vectors": vectors, "decisions": guarded})
