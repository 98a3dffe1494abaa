"""Drafts of replies by the reflex policy."""

from __future__ import annotations

from typing import Any

from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.quotations import clip
from arbor.heartbeat.reply import REPLY_KEYS, ProposalChoice
from arbor.heartbeat.situation import Situation

EXCERPT_LENGTH = 120


def excerpt(text: str, longest: int = EXCERPT_LENGTH) -> str:
    """Return a text on one line, clipped."""
    return clip(" ".join(text.split()), longest)


class Draft:
    """Collects a reply in REPLY_SCHEMA, within the situation's offers and energy."""

    def __init__(self, situation: Situation) -> None:
        self.energy = situation.energy
        self.actions: list[dict[str, Any]] = []
        self._offers = {offer.name: offer for offer in situation.actions}
        self._thoughts: list[str] = []
        self._lists: dict[str, list[Any]] = {
            key: [] for key in REPLY_KEYS if key not in ("thinking", "actions")
        }

    def may(self, action: str) -> bool:
        """Return whether the action is offered, at whatever price."""
        return action in self._offers

    def act(
        self,
        action: str,
        params: dict[str, Any],
        reasoning: str,
        *,
        goal_id: str | None = None,
        intent_id: str | None = None,
    ) -> bool:
        """Add an action if it is offered and affordable; return whether it was added."""
        offer = self._offers.get(action)
        if offer is None or offer.cost > self.energy:
            return False
        self.energy -= offer.cost
        self.actions.append(
            {
                "action": action,
                # A strict schema wants every parameter, null for what is left out.
                "params": dict.fromkeys(offer.params) | params,
                "reasoning": reasoning,
                "goal_id": goal_id,
                "intent_id": intent_id,
            }
        )
        return True

    def think(self, sentence: str) -> None:
        self._thoughts.append(sentence)

    def note(self, text: str) -> None:
        self._lists["memory_notes"].append({"text": text, "referenced_date": None})

    def progress(
        self,
        goal_id: str,
        fraction: float | None,
        note: str,
        *,
        state: GoalState | None = None,
        reason: str | None = None,
    ) -> None:
        self._lists["goal_updates"].append(
            {
                "goal_id": goal_id,
                "progress": fraction,
                "note": note,
                "state": None if state is None else state.value,
                "reason": reason,
                "blocked_by": None,
            }
        )

    def new_goal(self, title: str, description: str, layer: GoalLayer, source: GoalSource) -> None:
        self._lists["new_goals"].append(
            {
                "title": title,
                "description": description,
                "layer": layer.value,
                "source": source.value,
                "parent_goal_id": None,
                "deadline": None,
                "expected_reward": None,
            }
        )

    def decompose(self, goal_id: str, steps: list[tuple[str, str]]) -> None:
        """Break a goal into steps: (action, description)."""
        self._lists["decompositions"].append(
            {
                "goal_id": goal_id,
                "intentions": [
                    {
                        "action": action,
                        "description": description,
                        "precondition": None,
                        "postcondition": None,
                        "estimated_ticks": 1,
                    }
                    for action, description in steps
                ],
                "estimated_ticks": len(steps),
                "estimated_cost": None,
                "risk": None,
                "dependencies": [],
            }
        )

    def decide(self, proposal_id: str, choice: ProposalChoice, reason: str) -> None:
        self._lists["proposal_decisions"].append(
            {"proposal_id": proposal_id, "decision": choice.value, "reason": reason}
        )

    def concern(self, text: str) -> None:
        self._lists["concerns"].append(text)

    def wonder(self, text: str) -> None:
        self._lists["curiosity"].append(text)

    def reply(self) -> dict[str, Any]:
        return {"thinking": " ".join(self._thoughts), "actions": self.actions, **self._lists}
