"""Read recorded heartbeats to decide them again, in read-only transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connections
from pydantic import ValidationError

from apps.authority.services.reflexes import reflex_terms
from apps.calls.models import CallStatus, ExternalCall
from apps.calls.services.provider_lookup import find_provider
from apps.contacts.services.limits import situation_refusals
from apps.heartbeats.models import Heartbeat
from apps.knowledge.services.skill_texts import with_texts
from apps.providers import model_for, tenant_model, token_counters
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.prompts.questions import request_of, sections_of
from arbor.heartbeat.replay import RecordedHeartbeat, decide_reply
from arbor.heartbeat.situation import Situation
from arbor.history import Record, setting_of
from arbor.models.handles import Handle, is_reflex
from arbor.models.ports import CallPurpose, ModelReply, ModelRequest
from arbor.models.token_estimates import estimate_tokens
from arbor.models.windows import window_of
from arbor.quotations import counted
from arbor.selves.boundaries import DEFAULT_BOUNDARIES
from arbor.selves.boundary_check import boundaries_in_force

#: The purposes of the calls that show which replies were decided about.
_REPLAYED = (CallPurpose.THINK.value, CallPurpose.VOICE.value)


@dataclass(frozen=True, kw_only=True)
class ReplayInput:
    """A heartbeat as it was recorded, for its replay."""

    id: UUID
    tenant_id: UUID
    agent: str
    number: int
    model: str
    heartbeat: RecordedHeartbeat
    #: The first request to its model; None if it was not stored.
    request: ModelRequest | None


@dataclass(frozen=True, kw_only=True)
class OtherModelDecision:
    """The decisions of another model."""

    model: str
    reply: ModelReply
    decisions: tuple[Decision, ...]


def read_recorded_heartbeat(*, heartbeat_id: UUID, tenant_id: UUID) -> ReplayInput:
    """Read a heartbeat's record. Raises NotFound, and Invalid for one without a decision or a complete record."""
    with tenant_transaction(tenant_id):
        _set_read_only()
        heartbeat = Heartbeat.objects.select_related("agent").filter(id=heartbeat_id).first()
        if heartbeat is None:
            raise NotFound(_missing_message(heartbeat_id))
        if not heartbeat.situation:
            why = f": {heartbeat.reason}" if heartbeat.reason else ""
            raise Invalid(
                f"heartbeat {heartbeat_id} is {heartbeat.status}{why}; only one that came to a decision can be replayed"
            )
        situation = _with_skills(_read_situation(heartbeat))
        if situation.terms is None:
            raise Invalid(
                f"heartbeat {heartbeat_id} was recorded by a version of Arbor that did not record its terms (budget,"
                " boundaries, possible actions); newer heartbeats can be replayed"
            )
        calls = list(
            ExternalCall.objects.filter(
                heartbeat_id=heartbeat.id, purpose__in=_REPLAYED, status=CallStatus.COMPLETE
            ).order_by("requested_at", "id")
        )
        return _replay_input(heartbeat, situation, calls)


def ask_other_model(found: ReplayInput, *, model: str) -> OtherModelDecision:
    """Send the recorded request to another model (`provider/model`), and decide on its reply; write nothing.

    Raises Invalid for an invalid handle or a missing prompt, ModelError, ReplyInvalid for a reply without decision, and RuntimeError
    inside a transaction, which would stay open during the model call.
    """
    handle = str(Handle.parse_input(model))
    if found.request is None:
        raise Invalid(f"heartbeat {found.id} has no recorded prompt, so no other model can be asked")
    request = ModelRequest.from_json(
        {
            **found.request.to_json(),
            "context": found.heartbeat.situation.model_copy(
                update={"terms": None, "model_is_reflex": True}
            ).model_dump(mode="json")
            if is_reflex(handle)
            else {},
        }
    )
    if connections[APP].in_atomic_block:
        raise RuntimeError("a model must be asked outside any transaction")
    with tenant_transaction(found.tenant_id):
        _set_read_only()
        own = find_provider(found.tenant_id, handle)
    asked = model_for(handle) if own is None else tenant_model(handle, own)
    reply = asked.complete(request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S)
    return OtherModelDecision(model=handle, reply=reply, decisions=decide_reply(found.heartbeat, reply.text))


def _replay_input(heartbeat: Heartbeat, situation: Situation, calls: list[ExternalCall]) -> ReplayInput:
    first = calls[0] if calls and calls[0].request else None
    sections = sections_of(first.sections, first.request) if first is not None else []
    assert situation.terms is not None
    return ReplayInput(
        id=heartbeat.id,
        tenant_id=heartbeat.tenant_id,
        agent=heartbeat.agent.name,
        number=heartbeat.number,
        model=heartbeat.model,
        heartbeat=RecordedHeartbeat(
            reflexes=reflex_terms(),
            situation=situation,
            sections=[(section["name"], section["text"]) for section in sections],
            replies=_decided_replies(calls),
            actions=heartbeat.actions,
            dropped=heartbeat.dropped,
            repairs=heartbeat.repairs,
            window=situation.terms.window
            or window_of(
                calls[0].model if calls else heartbeat.model, otherwise=settings.ARBOR_MODEL_CONTEXT
            ),
            reply_tokens=situation.terms.reply_tokens or settings.ARBOR_MODEL_MAX_TOKENS,
            count=token_counters().get(situation.terms.tokenizer, estimate_tokens),
            boundaries=boundaries_in_force(DEFAULT_BOUNDARIES, situation.terms.boundaries),
            cooling=situation_refusals,
        ),
        request=request_of(first.request) if first is not None else None,
    )


def _read_situation(heartbeat: Heartbeat) -> Situation:
    """Read the recorded situation. Raises Invalid for one that this version cannot read."""
    try:
        return Situation.model_validate(heartbeat.situation)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        count = counted(len(faults), "fault")
        first = ".".join(str(part) for part in faults[0]["loc"])
        raise Invalid(
            f"heartbeat {heartbeat.id} was recorded by another version of Arbor, which this version cannot read"
            f" ({first}: {faults[0]['msg']}; {count}); newer heartbeats can be replayed"
        ) from error


def _with_skills(situation: Situation) -> Situation:
    """Return the situation with the texts of the versions of its skills."""
    if not situation.skills:
        return situation
    return situation.model_copy(update={"skills": with_texts(situation.skills)})


def _missing_message(heartbeat_id: UUID) -> str:
    age = settings.ARBOR_HISTORY_AGES[Record.HEARTBEATS]
    text = f"there is no heartbeat {heartbeat_id} in this tenant"
    if age is None:
        return text
    days = age / timedelta(days=1)
    return f"{text}: it never was, or it is older than {days:g} day{'s' if days != 1 else ''} ({setting_of(Record.HEARTBEATS)}) and was deleted"


def _set_read_only() -> None:
    """Set the open transaction to read-only."""
    with connections[APP].cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")


def _decided_replies(calls: Sequence[ExternalCall]) -> list[str]:
    """Return the replies that were decided about: all but those that the inner voices had reconsidered."""
    next_purposes = [*(call.purpose for call in calls[1:]), ""]
    return [
        call.reply
        for call, next_purpose in zip(calls, next_purposes, strict=True)
        if call.purpose == CallPurpose.THINK and next_purpose != CallPurpose.VOICE
    ]
