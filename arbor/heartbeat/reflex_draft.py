"""Drafts of replies by the reflex policy."""

from __future__ import annotations

from typing import Any

from arbor.heartbeat.quotations import clip
from arbor.heartbeat.reply import (
    Decomposition,
    GoalUpdate,
    Intention,
    MemoryNote,
    ProposalDecision,
    ProposedAction,
    ProposedGoal,
    Reply,
)
from arbor.heartbeat.situation import Situation

EXCERPT_LENGTH = 120


def excerpt(text: str, longest: int = EXCERPT_LENGTH) -> str:
    """Return a text on one line, clipped."""
    return clip(" ".join(text.split()), longest)


class Draft:
    """Collects a reply, within the situation's offers and energy."""

    def __init__(self, situation: Situation) -> None:
        self.energy = situation.energy
        self._offers = {offer.name: offer for offer in situation.actions}
        self._thoughts: list[str] = []
        self.actions: list[ProposedAction] = []
        self.notes: list[MemoryNote] = []
        self.updates: list[GoalUpdate] = []
        self.new_goals: list[ProposedGoal] = []
        self.decompositions: list[Decomposition] = []
        self.proposal_decisions: list[ProposalDecision] = []
        self.concerns: list[str] = []
        self.curiosity: list[str] = []

    def may(self, action: str) -> bool:
        """Return whether the action is offered, at whatever price."""
        return action in self._offers

    def act(self, action: str, params: dict[str, Any], reasoning: str, **serves: str) -> bool:
        """Add an action if it is offered and affordable, with the ids that it serves; return whether it was added."""
        offer = self._offers.get(action)
        if offer is None or offer.cost > self.energy:
            return False
        self.energy -= offer.cost
        # A strict schema wants every parameter, null for what is left out.
        params = dict.fromkeys(offer.params) | params
        self.actions.append(ProposedAction(action=action, params=params, reasoning=reasoning, **serves))
        return True

    def think(self, sentence: str) -> None:
        self._thoughts.append(sentence)

    def decompose(self, goal_id: str, steps: list[tuple[str, str]]) -> None:
        """Break a goal into steps: (action, description)."""
        intentions = [
            Intention(action=action, description=description, estimated_ticks=1)
            for action, description in steps
        ]
        self.decompositions.append(
            Decomposition(goal_id=goal_id, intentions=intentions, estimated_ticks=len(steps))
        )

    def reply(self) -> dict[str, Any]:
        """Return the reply as JSON in REPLY_SCHEMA."""
        return Reply(
            thinking=" ".join(self._thoughts),
            actions=self.actions,
            memory_notes=self.notes,
            goal_updates=self.updates,
            new_goals=self.new_goals,
            concerns=self.concerns,
            curiosity=self.curiosity,
            decompositions=self.decompositions,
            proposal_decisions=self.proposal_decisions,
        ).model_dump(mode="json")
