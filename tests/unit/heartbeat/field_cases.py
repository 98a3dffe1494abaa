"""Values of each parameter of an action, and of each field of a reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from arbor.heartbeat.replies.reply import (
    Decomposition,
    GoalUpdate,
    IdentityInsight,
    MemoryNote,
    PeerNote,
    ProposalDecision,
    ProposedAction,
    ProposedGoal,
    ReplyPart,
)
from tests.unit.heartbeat.state_builders import goal_row

REEF, HARBOUR = goal_row("reef"), goal_row("harbour")
GOAL, OTHER = str(REEF.id), str(HARBOUR.id)
MEMORY, PROPOSAL = UUID(int=7), UUID(int=8)
DAY = "2026-01-02"


@dataclass(frozen=True, kw_only=True)
class ActionCase:
    """An action: its required parameters, and another value of each parameter."""

    required: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, Any] = field(default_factory=dict)


QUERY = ActionCase(required={"query": "reefs"}, changed={"query": "tides"})
MESSAGE = {"intent": "news", "content": "The reef is red."}
OTHER_MESSAGE = {"intent": "a warning", "content": "The reef is dead.", "subject": "Reef"}
ACTION_CASES = {
    "observe": ActionCase(),
    "review_goals": ActionCase(),
    "rest": ActionCase(),
    "search_my_memories": QUERY,
    "search_knowledge": QUERY,
    "recall": ActionCase(
        required=QUERY.required,
        changed={
            **QUERY.changed,
            "limit": 7,
            "types": ["semantic"],
            "since": DAY,
            "until": DAY,
            "concept": "reef",
            "cluster": "reefs",
            "episode": str(UUID(int=9)),
        },
    ),
    "remember": ActionCase(
        required={"content": "The reef is red."},
        changed={
            "content": "The reef is dead.",
            "type": "episodic",
            "importance": 0.9,
            "steps": ["Dive."],
            "context": "in May",
            "pattern": "red, then dead",
        },
    ),
    "connect": ActionCase(
        required={"from_id": GOAL, "to_id": OTHER, "relation": "causes"},
        changed={"from_id": OTHER, "to_id": GOAL, "relation": "supports"},
    ),
    "maintain": ActionCase(
        required={"target": "memory", "id": "a", "verdict": "revise", "content": "b", "reason": "c"},
        changed={
            "target": "cluster",
            "id": "b",
            "verdict": "keep",
            "content": "d",
            "importance": 0.9,
            "reason": "e",
        },
    ),
    "reflect": ActionCase(
        required={"insight": "The reef is red."},
        changed={"insight": "The reef is dead.", "focus": "reefs", "rests_on": [str(MEMORY)]},
    ),
    "inquire_shallow": ActionCase(
        required={"question": "Which reef?"}, changed={"question": "Which sea?", "queries": ["reefs"]}
    ),
    "inquire_deep": ActionCase(
        required={"question": "Which reef?"}, changed={"question": "Which sea?", "queries": ["reefs"]}
    ),
    "synthesize": ActionCase(
        required={"topic": "reefs", "content": "The reef is red."},
        changed={
            "topic": "seas",
            "content": "The reef is dead.",
            "materials": [str(MEMORY)],
            "kind": "creative",
        },
    ),
    "brainstorm_goals": ActionCase(
        required={"goals": [{"title": "Sail"}, {"title": "Row"}]},
        changed={
            "goals": [{"title": "Sail", "description": "out"}, {"title": "Row", "state": "backburner"}],
        },
    ),
    "reprioritize": ActionCase(
        required={"goal_id": GOAL, "state": "queued"}, changed={"goal_id": OTHER, "state": "backburner"}
    ),
    "reach_out_user": ActionCase(required=MESSAGE, changed=OTHER_MESSAGE),
    "reach_out_public": ActionCase(required=MESSAGE, changed={**OTHER_MESSAGE, "platform": "board"}),
    "reach_out_agent": ActionCase(
        required={"to": "Lyra", "content": "Hello."}, changed={"to": "Vega", "content": "Good day."}
    ),
    "start_workflow": ActionCase(
        required={"workflow": "review"}, changed={"workflow": "report", "input": {"topic": "rain"}}
    ),
    "complete_step": ActionCase(
        required={"step": "a", "output": "b"}, changed={"step": "c", "output": "d", "failed": True}
    ),
}
#: Parameters whose effect depends on others; `maintain` of a belief reads it.
UNTRIED = {("maintain", "confidence")}


@dataclass(frozen=True, kw_only=True)
class PartCase:
    """An item of a reply: its required fields, and another value of each further one."""

    part: type[ReplyPart]
    required: dict[str, Any]
    further: dict[str, Any]
    #: The actions of the reply.
    actions: tuple[dict[str, Any], ...] = ()


RECALL = {"action": "recall", "params": {"query": "reefs"}}
INTENTION = {"action": "recall", "description": "Read on."}
PART_CASES = {
    "memory_notes": PartCase(
        part=MemoryNote, required={"text": "The reef is red."}, further={"referenced_date": DAY}
    ),
    "goal_updates": PartCase(
        part=GoalUpdate,
        required={"goal_id": GOAL, "note": "Half of it."},
        further={
            "progress": 0.5,
            "state": "queued",
            "blocked_by": "no wind",
            "met": ["a boat"],
        },
    ),
    "new_goals": PartCase(
        part=ProposedGoal,
        required={"title": "Sail"},
        further={
            "description": "out",
            "layer": "task",
            "source": "external",
            "parent_goal_id": GOAL,
            "deadline": DAY,
            "expected_reward": 0.3,
        },
    ),
    "decompositions": PartCase(
        part=Decomposition,
        required={"goal_id": OTHER, "intentions": [INTENTION]},
        further={"estimated_ticks": 3, "estimated_cost": 4, "risk": 0.5, "dependencies": ["wind"]},
    ),
    "proposal_decisions": PartCase(
        part=ProposalDecision,
        required={"proposal_id": str(PROPOSAL), "decision": "accept"},
        further={"reason": "It is so."},
    ),
    "identity_insights": PartCase(
        part=IdentityInsight,
        required={"kind": "trait", "content": "patient", "evidence": [str(MEMORY)]},
        further={"confidence": 0.9},
    ),
    "peer_notes": PartCase(
        part=PeerNote,
        required={"peer": "Lyra", "outcome": "success"},
        further={"competence": 0.9, "reliability": 0.8, "interests": ["reefs"]},
    ),
    "actions": PartCase(part=ProposedAction, required=RECALL, further={"goal_id": GOAL}),
}
#: Fields that are tried with others below, or only recorded.
UNTRIED_FIELDS = {
    "goal_updates": {"reason"},
    "actions": {"reasoning", "intent_id"},
}
INTENTION_FIELDS = {
    "precondition": "calm sea",
    "postcondition": "a chart",
    "estimated_ticks": 3,
    "follows": str(MEMORY),
}
