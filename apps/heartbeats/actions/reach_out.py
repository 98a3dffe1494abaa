"""The actions `reach_out_user`, `reach_out_public` and `reach_out_agent`: write messages.

Messages to users and to the public are delivered after the commit; messages to other agents are percepts.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q

from apps.agents.models import Agent, Percept, PerceptKind
from apps.agents.services.percepts import emit_percept
from apps.agents.services.sealed_percepts import seal_percept
from apps.contacts.models import OutboxMessage
from apps.contacts.services.limits import outbox_refusals
from apps.contacts.services.outbox import OutgoingMessage, add_to_outbox
from apps.heartbeats.actions.context import ActionContext
from apps.memories.services.store.remember import store
from arbor.agents.endorsement import EndorsementStatus
from arbor.agents.lifecycle import REACHABLE
from arbor.contacts.values import Audience, ChannelKind
from arbor.errors import NotFound
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.params.outward import SUBJECT_LENGTH
from arbor.heartbeat.results import QUOTE_LENGTH, ActionOutcome, ActionResult, action_result, blocked_result
from arbor.ids import read_id
from arbor.memory.values import MemoryType, NewMemory
from arbor.quotations import clip_line, counted, shorten

#: As important as a lesson, because people may ask the agent about its message.
IMPORTANCE = 0.7
#: Messages of one agent that may wait for another one: a dormant or paused agent reads none.
MAX_UNREAD = 20


def reach_out_user(context: ActionContext, decision: Decision) -> ActionResult:
    """Write to the agent's users."""
    return _reach_out(context, decision, Audience.USER)


def reach_out_public(context: ActionContext, decision: Decision) -> ActionResult:
    """Write to the public; agents of the tenant that the text names receive the message."""
    return _reach_out(context, decision, Audience.PUBLIC)


def reach_out_agent(context: ActionContext, decision: Decision) -> ActionResult:
    """Write to another agent of the tenant, whose next heartbeat receives the message as a percept, sealed until then.

    The message does not bring that heartbeat forward, so two agents answer each other at their own pace. Raises NotFound,
    naming the agents that can be written to, and IdentityRefused.
    """
    wanted, content = decision.params["to"].strip().removeprefix("@"), decision.params["content"]
    peer = _other_agent(context, wanted)
    unread = Percept.objects.filter(
        agent_id=peer.id, peer_id=context.agent_id, kind=PerceptKind.PEER_MESSAGE, heartbeat__isnull=True
    )
    if unread.count() >= MAX_UNREAD:
        reason = f"{peer.name} has not read your last {MAX_UNREAD} messages yet"
        return blocked_result(decision.model_copy(update={"reason": reason}))
    percept = seal_percept(
        sender_id=context.agent_id,
        receiver_id=peer.id,
        content=content,
        detail={"heartbeat": str(context.heartbeat_id)},
    )
    percept.save(force_insert=True)
    emit_percept(percept)
    remembered = _remember(context, f"I wrote to the agent {peer.name}: {content}")
    summary = f"wrote to {peer.name}: {shorten(content, QUOTE_LENGTH)}"
    return action_result(decision, ActionOutcome.SUCCESS, summary, remembered)


def _other_agent(context: ActionContext, wanted: str) -> Agent:
    """Return the endorsed, reachable agent with this id or name. Case matters only if two names differ in nothing else.

    Raises NotFound, also if several agents match.
    """
    endorsed = Agent.objects.filter(endorsement__status=EndorsementStatus.ACTIVE)
    others = endorsed.filter(status__in=REACHABLE).exclude(id=context.agent_id)
    if peer_id := read_id(wanted):
        named = others.filter(id=peer_id)
    else:
        named = others.filter(Q(name__iexact=wanted) | Q(public_id=wanted))
    found: list[Agent] = list(named.only("tenant_id", "id", "name").order_by("id")[:2])
    exact = [agent for agent in found if agent.name == wanted] or found
    if len(exact) == 1:
        return exact[0]
    known = ", ".join(context.situation.environment.other_agents) or "nobody"
    raise NotFound(
        f"no agent {shorten(wanted, QUOTE_LENGTH)!r} can be written to now; you can write to: {known}"
    )


def _reach_out(context: ActionContext, decision: Decision, audience: Audience) -> ActionResult:
    params = decision.params
    outgoing = OutgoingMessage(
        agent_id=context.agent_id,
        heartbeat_id=context.heartbeat_id,
        index=decision.index,
        audience=audience,
        subject=params.get("subject") or clip_line(params["content"], SUBJECT_LENGTH),
        content=params["content"],
        at=context.now,
        platform=params.get("platform") or "",
    )
    # The situation may be stale: an earlier round trip of this heartbeat may have written.
    refusals = outbox_refusals(
        agent_id=context.agent_id, key=outgoing.key, text=outgoing.content, now=context.now
    )
    reason = refusals.get(decision.action)
    if reason:
        return blocked_result(decision.model_copy(update={"reason": reason}))
    messages = add_to_outbox(outgoing)
    remembered = _remember(
        context,
        f"I decided to write {_to(audience)}: {outgoing.content}",
        intent=params["intent"],
        messages=[str(message.id) for message in messages],
    )
    summary = (
        f"decided to write {_to(audience)} {_carriers(messages)}: {shorten(outgoing.content, QUOTE_LENGTH)}"
    )
    return action_result(decision, ActionOutcome.SUCCESS, summary, remembered)


def _remember(context: ActionContext, content: str, **detail: Any) -> list[UUID]:
    """Store the memory of a message, and return its id; the embedding backlog adds the vector."""
    memory = NewMemory(
        content=content,
        type=MemoryType.EPISODIC,
        importance=IMPORTANCE,
        occurred_at=context.now,
        source=context.source,
        detail=detail,
    )
    return list(store(agent_id=context.agent_id, memories=[memory], vectors=None).ids)


def _to(audience: Audience) -> str:
    return "to my user" if audience is Audience.USER else "in public"


def _carriers(messages: list[OutboxMessage]) -> str:
    kinds = [message.kind for message in messages if message.kind != ChannelKind.PEER]
    peers = len(messages) - len(kinds)
    named = f", {counted(peers, 'named agent')} will receive it" if peers else ""
    return f"(by {', '.join(dict.fromkeys(kinds))}{named})"
