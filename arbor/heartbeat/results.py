"""What became of the actions of a heartbeat, and of the goals it touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from arbor.goals.plans import LinkKind
from arbor.heartbeat.decision import Decision


class ActionOutcome(StrEnum):
    """How an action ended."""

    #: It did what it was for.
    SUCCESS = "success"
    #: It was tried and did not work.
    FAILURE = "failure"
    #: Part of it was done.
    PARTIAL = "partial"
    #: It was refused; nothing was tried and nothing paid.
    BLOCKED = "blocked"
    #: Nobody can tell.
    UNKNOWN = "unknown"


class ActionResult(BaseModel):
    """What became of one action; JSON by `model_dump(mode="json")`.

    `summary` is one line in the words that the agent reads at its next beat.
    """

    model_config = ConfigDict(frozen=True)

    index: int
    action: str
    outcome: ActionOutcome
    summary: str
    cost: int = 0
    #: Memories that were made, found or tied.
    memory_ids: list[str] = []
    goal_id: str | None = None
    intent_id: str | None = None
    #: What it brought, whole, for the agent to read before its beat goes on; empty where there is nothing to read.
    brought: str = ""

    @property
    def to_read(self) -> bool:
        """Return whether it brought something that the agent has not seen."""
        return bool(self.brought)


def answer(
    decision: Decision,
    outcome: ActionOutcome,
    summary: str,
    memory_ids: Sequence[UUID] = (),
    *,
    brought: str = "",
) -> ActionResult:
    """Return the result of an action; `brought` is what the agent is to read before its beat goes on."""
    return ActionResult(
        index=decision.index,
        action=decision.action,
        outcome=outcome,
        summary=summary,
        cost=decision.cost,
        memory_ids=[str(memory_id) for memory_id in memory_ids],
        goal_id=decision.goal_id,
        intent_id=decision.intent_id,
        brought=brought,
    )


def refused(decision: Decision) -> ActionResult:
    """Return the result of an action that does not run."""
    return ActionResult(
        index=decision.index,
        action=decision.action,
        outcome=ActionOutcome.BLOCKED,
        summary=f"not done: {decision.reason}",
        goal_id=decision.goal_id,
        intent_id=decision.intent_id,
    )


class GoalChangeKind(StrEnum):
    """What happened to a goal."""

    #: It is further on, or has a new note.
    PROGRESSED = "progressed"
    #: It was taken up.
    CREATED = "created"
    #: It was moved within the backlog.
    MOVED = "moved"
    #: It was broken into intents.
    PLANNED = "planned"
    #: Something stands in its way.
    BLOCKED = "blocked"
    #: It is done.
    COMPLETED = "completed"
    #: It was given up.
    ABANDONED = "abandoned"
    #: What was wanted for it is not possible; the change says why.
    REFUSED = "refused"


class GoalChange(BaseModel):
    """One thing that a heartbeat did to a goal, or could not; JSON by `model_dump(mode="json")`.

    `change` is one line about it, such as `read the survey`; `goal_id` is empty for a new goal that was refused; `by_rule`
    tells that a rule did it, not the agent.
    """

    model_config = ConfigDict(frozen=True)

    kind: GoalChangeKind
    title: str
    change: str
    goal_id: str = ""
    by_rule: bool = False


_LINK_OF_CHANGE: Mapping[GoalChangeKind, LinkKind] = {
    GoalChangeKind.CREATED: LinkKind.ORIGIN,
    GoalChangeKind.PROGRESSED: LinkKind.PROGRESS,
    GoalChangeKind.MOVED: LinkKind.PROGRESS,
    GoalChangeKind.PLANNED: LinkKind.PROGRESS,
    GoalChangeKind.BLOCKED: LinkKind.BLOCKER,
    GoalChangeKind.COMPLETED: LinkKind.COMPLETION,
    GoalChangeKind.ABANDONED: LinkKind.COMPLETION,
}


def links_of(changes: Iterable[GoalChange]) -> list[tuple[str, LinkKind]]:
    """Return what the memory of a heartbeat is to each goal that it touched (seed 004, 7.4); a refusal touches none."""
    return [
        (change.goal_id, _LINK_OF_CHANGE[change.kind]) for change in changes if change.kind in _LINK_OF_CHANGE
    ]


def laid_aside(changes: Iterable[GoalChange]) -> set[str]:
    """Return the ids of goals that, where they were active, are so no more: done, given up, or moved within the backlog."""
    away = (GoalChangeKind.COMPLETED, GoalChangeKind.ABANDONED, GoalChangeKind.MOVED)
    return {change.goal_id for change in changes if change.kind in away}
