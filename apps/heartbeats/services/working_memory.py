"""Rebuild an agent's working memory from long-term events (seed 000, 2, `rebuild_from_long_term`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from apps.agents.models import AgentState
from apps.agents.services.locks import lock_schedule
from apps.agents.services.lookup import agent_by_id
from apps.agents.services.templates import find_template
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.goals.models import Goal
from apps.tenants.packing import unpack
from apps.tenants.statements import fetch
from arbor.agents.birth import first_working_memory
from arbor.clock import SystemClock
from arbor.contacts.chat import name_of_person, thought_of_turn
from arbor.errors import NotFound, ReplyInvalid, TemplateInvalid
from arbor.goals.values import GoalState
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import ActionResult, is_effort
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.working_memory import (
    MAX_GOALS,
    PastHeartbeat,
    PastTurn,
    WorkingMemory,
    as_stored,
    initial_working_memory,
)
from arbor.quotations import counted

#: The most heartbeats, and the most turns, that are read; the lists of the working memory are shorter.
MAX_EVENTS = 50

_HEARTBEATS = """
SELECT h.started_at, h.mode, h.reasoning, h.actions,
    EXISTS (
        SELECT FROM heartbeats_percept p
        WHERE p.tenant_id = h.tenant_id AND p.agent_id = h.agent_id AND p.heartbeat_id = h.id AND p.kind = 'user_message'
    ),
    ARRAY(
        SELECT c.reply FROM calls_externalcall c
        WHERE c.tenant_id = h.tenant_id AND c.heartbeat_id = h.id AND c.purpose = 'think' AND c.status = 'complete'
        ORDER BY c.requested_at
    )
FROM heartbeats_heartbeat h WHERE h.tenant_id = %(tenant)s AND h.agent_id = %(agent)s AND h.status = 'done'
ORDER BY h.started_at DESC LIMIT %(limit)s
"""
_TURNS = """
SELECT m.at, s.person, s.id, s.ended_at IS NOT NULL, m.detail->>'thinking', asked.content
FROM contacts_chatsession s
JOIN contacts_chatmessage m ON m.tenant_id = s.tenant_id AND m.session_id = s.id
LEFT JOIN contacts_chatmessage asked ON asked.tenant_id = m.tenant_id AND asked.id = (m.detail->>'to')::uuid
WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent)s AND m.speaker = 'agent' AND m.error = ''
ORDER BY m.at DESC LIMIT %(limit)s
"""


@dataclass(frozen=True, kw_only=True)
class RebuiltWorkingMemory:
    """A working memory before and after its rebuild."""

    before: WorkingMemory
    after: WorkingMemory
    #: Numbers of heartbeats and turns read.
    heartbeats: int
    turns: int


@transaction.atomic
def rebuild_working_memory(*, agent_id: UUID, actor: str, dry_run: bool = False) -> RebuiltWorkingMemory:
    """Rebuild the agent's working memory from its last 50 heartbeats and 50 turns; a dry run writes nothing.

    The former working memory is stored in the audit log. Thoughts from the agent's template that are still present stay.
    Raises NotFound.
    """
    agent = agent_by_id(agent_id)
    # In the order of heartbeats, to avoid deadlocks; waits for a leg under way.
    lock_schedule(agent_id)
    state = AgentState.objects.select_for_update().get(agent_id=agent_id)
    before = WorkingMemory.model_validate(state.working_memory)
    initial_texts = _initial_texts(agent.template_name)
    heartbeats, turns = list(_past_heartbeats(agent_id)), list(_past_turns(agent_id))
    initial = WorkingMemory(
        agent_id=str(agent_id),
        name=agent.name,
        started_at=SystemClock().now(),
        thoughts=[thought for thought in before.thoughts if thought.text in initial_texts],
        curiosity=[line for line in before.curiosity if line in initial_texts],
    )
    after = initial_working_memory(
        initial,
        [*heartbeats, *turns],
        active_goals=list(
            Goal.objects.filter(agent_id=agent_id, state=GoalState.ACTIVE)
            .order_by("-touched_at")
            .values_list("title", flat=True)[:MAX_GOALS]
        ),
    )
    if not dry_run:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"rebuilt the working memory of {agent.name} from {counted(len(heartbeats), 'heartbeat')}"
            f" and {counted(len(turns), 'turn')}",
            detail={"before": before.model_dump(mode="json")},
        )
        state.working_memory = json.loads(as_stored(after))
        state.save(update_fields=["working_memory"])
    return RebuiltWorkingMemory(before=before, after=after, heartbeats=len(heartbeats), turns=len(turns))


def _initial_texts(template_name: str) -> frozenset[str]:
    """Return the initial thoughts and questions of this template's agents; empty if the template is deleted or unreadable."""
    try:
        spec = find_template(template_name).spec
    except (NotFound, TemplateInvalid):
        return frozenset()
    memory = first_working_memory(spec, now=SystemClock().now()).working_memory
    return frozenset((*(thought.text for thought in memory.thoughts), *memory.curiosity))


def _past_heartbeats(agent_id: UUID) -> Iterator[PastHeartbeat]:
    for at, mode, reasoning, actions, user_waiting, replies in fetch(
        _HEARTBEATS, agent=agent_id, limit=MAX_EVENTS
    ):
        parsed = [reply for text in replies if (reply := _parse(unpack(text))) is not None]
        yield PastHeartbeat(
            at=at,
            thinking=reasoning,
            concerns=[line for reply in parsed for line in reply.concerns],
            curiosity=[line for reply in parsed for line in reply.curiosity],
            resolved=[line for reply in parsed for line in reply.resolved],
            user_waiting=user_waiting,
            acted=any(is_effort(ActionResult.model_validate(action)) for action in unpack(actions)),
            consolidated=mode == Mode.CONSOLIDATION,
        )


def _parse(text: str) -> Reply | None:
    try:
        return parse_reply(text).reply
    except ReplyInvalid:
        return None


def _past_turns(agent_id: UUID) -> Iterator[PastTurn]:
    for at, person, session_id, over, thinking, asked in fetch(_TURNS, agent=agent_id, limit=MAX_EVENTS):
        human = name_of_person(person)
        yield PastTurn(
            at=at,
            human=human,
            conversation=str(session_id),
            thinking=thinking or (thought_of_turn(human, asked) if asked else ""),
            over=over,
        )
