"""Match turns of a conversation with the agent's boundaries; audit the matches, and move the mood by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from apps.agents.models import AgentState
from apps.agents.services.profile import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import ChatMessage
from apps.memories.services.embedding.embedding import embed_query
from apps.memories.services.embedding.minds import model_of
from apps.selves.models import Boundary
from apps.selves.services.inner_state import mood_of
from apps.tenants.scope import tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.selves.boundaries import DEFAULT_BOUNDARIES, BoundaryResponse
from arbor.selves.boundary_check import BoundaryMatch, Vector, check, in_force
from arbor.selves.emotions import Event

log = structlog.get_logger(__name__)

_COLUMNS = (
    "name",
    "description",
    "type",
    "patterns",
    "examples",
    "response",
    "flexibility",
    "importance",
    "enabled",
)


def match_boundaries(*, tenant_id: UUID, agent_id: UUID, text: str) -> list[BoundaryMatch]:
    """Return the boundary matches of a text, the most important first. Outside any transaction."""
    with tenant_transaction(tenant_id):
        rules = in_force(
            DEFAULT_BOUNDARIES, list(Boundary.objects.filter(agent_id=agent_id).values(*_COLUMNS))
        )
        model = model_of(agent_id)
    texts = [text, *(example for rule in rules for example in rule.examples)]
    vectors: dict[str, Vector] = {}
    try:
        found = embed_query(tenant_id=tenant_id, texts=texts, model=model)
        vectors = dict(zip(texts, found.tolist(), strict=True))
    except EmbeddingFailed as error:
        log.warning("boundaries_by_words_alone", agent_id=str(agent_id), error=str(error))
    return check([text], rules, vectors)


def feel_turn(
    state: AgentState,
    *,
    arrived: Sequence[Mapping[str, Any]],
    own: Sequence[Mapping[str, Any]],
    now: datetime,
) -> None:
    """Move the mood of a locked state, which the caller saves, by a turn: contact, and boundary matches.

    `arrived` are the boundary matches of the person's turn, `own` those of the answer, as the turn's row stores them.
    """
    events = [Event.CONTACT, *(Event.BOUNDARY for _ in _pressed(arrived, own))]
    state.mood = mood_of(state.agent_id, state.mood, now).moved(events).model_dump(mode="json")


def audit_boundary_matches(
    asked: ChatMessage, *, arrived: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]
) -> None:
    """Audit the boundary matches of a turn in the open transaction. Without matches, no statement."""
    if not arrived and not own:
        return
    agent = agent_by_id(asked.session.agent_id)
    acts = [
        *((f"what {asked.session.person} said touches", match) for match in arrived),
        *((f"an answer was {'withheld' if match['withheld'] else 'given'} at", match) for match in own),
    ]
    for what, match in acts:
        record(
            action=AuditAction.BOUNDARY,
            actor=f"agent:{agent.public_id}",
            agent_id=agent.id,
            message=f"{what} {match['name']} ({match['response']}): {match['why']}",
            detail={**match, "conversation": str(asked.session_id), "turn": str(asked.id)},
        )


def _pressed(arrived: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of matched boundaries that move the mood; flagged ones do not."""
    return {
        *(match["name"] for match in arrived if match["response"] != BoundaryResponse.FLAG),
        *(match["name"] for match in own if match["withheld"]),
    }
