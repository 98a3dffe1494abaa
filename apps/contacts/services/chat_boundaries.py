"""Audit the boundary matches of a turn of a conversation, and move the mood by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from apps.agents.models import AgentState
from apps.agents.services.profile import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import ChatMessage
from apps.selves.services.inner_state import mood_of
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.emotions import Event


def move_mood_by_turn(
    state: AgentState,
    *,
    arrived: Sequence[Mapping[str, Any]],
    own: Sequence[Mapping[str, Any]],
    now: datetime,
) -> None:
    """Move the mood of a locked state, which the caller saves, by a turn: contact, and boundary matches.

    `arrived` are the boundary matches of the person's turn, `own` those of the answer, as the turn's row stores them.
    """
    events = [Event.CONTACT, *(Event.BOUNDARY for _ in _mood_moving_names(arrived, own))]
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


def _mood_moving_names(arrived: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of matched boundaries that move the mood; flagged ones do not."""
    return {
        *(match["name"] for match in arrived if match["response"] != BoundaryResponse.FLAG),
        *(match["name"] for match in own if match["withheld"]),
    }
