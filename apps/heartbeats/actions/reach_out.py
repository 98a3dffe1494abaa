"""Reaching out: what the agent decided to say is posted with the decision, and leaves afterwards."""

from __future__ import annotations

from apps.contacts.models import OutboxMessage
from apps.contacts.services.limits import posted_refusals
from apps.contacts.services.outbox import Letter, post
from apps.heartbeats.actions.context import GLIMPSE, ActionContext
from apps.memories.services.store.remember import store
from arbor.contacts.values import Audience, ChannelKind
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.results import ActionOutcome, ActionResult, answer, refused
from arbor.memory.values import MemoryType, NewMemory

#: As much as a lesson the agent drew: it will be asked about what it wrote.
IMPORTANCE = 0.7
SUBJECT_LENGTH = 150


def reach_out_user(context: ActionContext, decision: Decision) -> ActionResult:
    """Write to the agent's users."""
    return _reach_out(context, decision, Audience.USER)


def reach_out_public(context: ActionContext, decision: Decision) -> ActionResult:
    """Write in public; agents of the tenant that it names hear of it."""
    return _reach_out(context, decision, Audience.PUBLIC)


def _reach_out(context: ActionContext, decision: Decision, audience: Audience) -> ActionResult:
    params = decision.params
    letter = Letter(
        agent_id=context.agent_id,
        heartbeat_id=context.heartbeat_id,
        index=decision.index,
        audience=audience,
        subject=params.get("subject") or _beginning(params["content"]),
        content=params["content"],
        at=context.now,
        platform=params.get("platform") or "",
    )
    # What the beat saw may be old: an earlier turn of it may have written.
    reason = posted_refusals(agent_id=context.agent_id, key=letter.key, now=context.now).get(decision.action)
    if reason:
        return refused(decision.model_copy(update={"reason": reason}))
    posted = post(letter)
    memory = NewMemory(
        content=f"I decided to write {_whom(audience)}: {letter.content}",
        type=MemoryType.EPISODIC,
        importance=IMPORTANCE,
        occurred_at=context.now,
        source=context.source,
        detail={"intent": params["intent"], "messages": [str(message.id) for message in posted]},
    )
    # Upkeep embeds it, with many others.
    stored = store(agent_id=context.agent_id, memories=[memory], vectors=None)
    return answer(
        decision,
        ActionOutcome.SUCCESS,
        f"decided to write {_whom(audience)} {_by(posted)}: {clip(letter.content, GLIMPSE)}",
        list(stored.ids),
    )


def _whom(audience: Audience) -> str:
    return "to my user" if audience is Audience.USER else "in public"


def _by(posted: list[OutboxMessage]) -> str:
    ways = [message.kind for message in posted if message.kind != ChannelKind.PEER]
    heard = len(posted) - len(ways)
    named = f", {heard} named agent{'s' if heard != 1 else ''} will hear it" if heard else ""
    return f"(by {', '.join(dict.fromkeys(ways))}{named})"


def _beginning(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= SUBJECT_LENGTH else f"{line[: SUBJECT_LENGTH - 1].rstrip()}…"
