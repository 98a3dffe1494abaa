"""Results of actions and changes of goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import AliasChoices, BaseModel, Field

from arbor.agents.energy import ALWAYS_FREE
from arbor.goals.plans import LinkKind
from arbor.heartbeat.decision import POSSIBLE, Decision
from arbor.heartbeat.replies.items import Dropped
from arbor.quotations import shorten
from arbor.selves.emotions import Event

#: Characters of a text quoted in the summary of a result, which the agent reads at its next heartbeat.
QUOTE_LENGTH = 160
#: The most parameters without an effect that a summary names, and the most characters of each name.
MAX_IGNORED = 5
IGNORED_LENGTH = 40


class ActionOutcome(StrEnum):
    """The outcomes of an action."""

    #: The action worked.
    SUCCESS = "success"
    #: The action was tried and did not work.
    FAILURE = "failure"
    #: A part of the action was done.
    PARTIAL = "partial"
    #: The action was refused; nothing was tried, and nothing paid.
    BLOCKED = "blocked"
    #: Not known, or not yet.
    UNKNOWN = "unknown"


class ActionResult(BaseModel, frozen=True):
    """The result of one action; JSON by `model_dump(mode="json")`. `summary` is one line for the next heartbeat."""

    index: int
    action: str
    outcome: ActionOutcome
    summary: str
    cost: int = 0
    #: Memories that were created, found or connected.
    memory_ids: list[str] = []
    goal_id: str | None = None
    intent_id: str | None = None
    #: The full text for the next round trip; may be empty.
    brought: str = ""


def is_effort(result: ActionResult) -> bool:
    """Return whether an action was work: it was paid for or a policy made it free, and is no rest, whatever its price."""
    if result.action == "rest" or result.outcome is ActionOutcome.BLOCKED:
        return False
    return bool(result.cost) or result.action not in ALWAYS_FREE


def result_summary(decision: Decision, summary: str) -> str:
    """Return the summary of an action on one line, and of one that ran with the names of its parameters that had no effect."""
    if decision.ignored and decision.runs:
        names = [shorten(name, IGNORED_LENGTH) for name in decision.ignored[:MAX_IGNORED]]
        more = len(decision.ignored) - len(names)
        summary = f"{summary}; without effect: {', '.join(names)}{f' and {more} more' if more else ''}"
    return " ".join(summary.split())


def action_result(
    decision: Decision,
    outcome: ActionOutcome,
    summary: str,
    memory_ids: Sequence[UUID] = (),
    *,
    brought: str = "",
) -> ActionResult:
    return ActionResult(
        index=decision.index,
        action=decision.action,
        outcome=outcome,
        summary=result_summary(decision, summary),
        cost=decision.cost,
        memory_ids=[str(memory_id) for memory_id in memory_ids],
        goal_id=decision.goal_id,
        intent_id=decision.intent_id,
        brought=brought,
    )


def blocked_result(decision: Decision) -> ActionResult:
    """Return the result of a refused action; what is possible is in the prompt, and changes until the result is remembered."""
    free = decision.model_copy(update={"cost": 0})
    reason, *_ = decision.reason.partition(POSSIBLE)
    return action_result(free, ActionOutcome.BLOCKED, f"not done: {reason}")


class GoalChangeKind(StrEnum):
    """The kinds of changes to a goal."""

    #: The goal has progress or a new note.
    PROGRESSED = "progressed"
    #: The goal is new.
    CREATED = "created"
    #: The goal was moved within the backlog.
    MOVED = "moved"
    #: The goal was broken into intents.
    PLANNED = "planned"
    #: The goal waits for something.
    BLOCKED = "blocked"
    #: The goal is done.
    COMPLETED = "completed"
    #: The goal was abandoned.
    ABANDONED = "abandoned"
    #: A change was refused; `change` says why.
    REFUSED = "refused"


class GoalChange(BaseModel, frozen=True):
    """One change of a goal, or a refused one; JSON by `model_dump(mode="json")`.

    `change` is one line, such as `read the survey`; `goal_id` is empty for a refused new goal; `by_rule`: not by the agent.
    """

    kind: GoalChangeKind
    title: str
    change: str
    goal_id: str = ""
    by_rule: bool = False


class ChangeMeaning(NamedTuple):
    """The meaning of a kind of change: its words in a narrative, its event for the mood, its link to the memory."""

    words: str
    event: Event | None
    link: LinkKind | None


MEANINGS: Mapping[GoalChangeKind, ChangeMeaning] = {
    GoalChangeKind.PROGRESSED: ChangeMeaning("went on", Event.GOAL_PROGRESSED, LinkKind.PROGRESS),
    GoalChangeKind.CREATED: ChangeMeaning("is new", Event.GOAL_CREATED, LinkKind.ORIGIN),
    GoalChangeKind.MOVED: ChangeMeaning("moved", None, LinkKind.PROGRESS),
    GoalChangeKind.PLANNED: ChangeMeaning("has a plan", Event.GOAL_PLANNED, LinkKind.PROGRESS),
    GoalChangeKind.BLOCKED: ChangeMeaning("is held up", Event.GOAL_BLOCKED, LinkKind.BLOCKER),
    GoalChangeKind.COMPLETED: ChangeMeaning("is done", Event.GOAL_DONE, LinkKind.COMPLETION),
    GoalChangeKind.ABANDONED: ChangeMeaning("is given up", Event.GOAL_ABANDONED, LinkKind.COMPLETION),
    GoalChangeKind.REFUSED: ChangeMeaning("did not change as I wanted", Event.GOAL_REFUSED, None),
}


def links_of(changes: Iterable[GoalChange]) -> list[tuple[str, LinkKind]]:
    """Return the links from the heartbeat's memory to changed goals (seed 004, 7.4); refusals make none."""
    return [(change.goal_id, link) for change in changes if (link := MEANINGS[change.kind].link) is not None]


def finished_or_moved_goals(changes: Iterable[GoalChange]) -> set[str]:
    kinds = (GoalChangeKind.COMPLETED, GoalChangeKind.ABANDONED, GoalChangeKind.MOVED)
    return {change.goal_id for change in changes if change.kind in kinds}


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionRecord:
    """One action: its decision, its result and its round trip."""

    decision: Decision
    result: ActionResult
    #: `turn` in older checkpoints.
    round_trip: Annotated[int, Field(validation_alias=AliasChoices("round_trip", "turn"))] = 1

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `Heartbeat.actions`, as stored: without the values that `complete_entry` fills in."""
        entry = {**self.decision.model_dump(mode="json"), **self.result.model_dump(mode="json")}
        stored = {
            name: value for name, value in entry.items() if name not in _OMITTED or value != _OMITTED[name]
        }
        return stored if self.round_trip == 1 else {**stored, "round_trip": self.round_trip}


#: Values of an entry that are not stored: most entries have all of them, and each would be written to the write-ahead log.
_OMITTED: Mapping[str, Any] = {
    "reason": "",
    "ignored": [],
    "reasoning": "",
    "goal_id": None,
    "intent_id": None,
    "boundary_matches": [],
    "capability_id": "",
    "why": None,
    "approval_id": "",
    "by_approval": False,
    "memory_ids": [],
    "brought": "",
}


#: Keys of entries that older versions stored, with their names today.
_RENAMED: Mapping[str, str] = {"crossed": "boundary_matches", "turn": "round_trip"}


def complete_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored entry of `Heartbeat.actions` with all of its keys, in the order in which `jsonb` has them."""
    stored = {_RENAMED.get(name, name): value for name, value in entry.items()}
    missing = {name: copy(value) for name, value in _OMITTED.items() if name not in stored}
    return dict(sorted({**stored, **missing}.items(), key=lambda item: (len(item[0]), item[0])))


@dataclass(frozen=True, kw_only=True)
class RoundTripRecord:
    """The record of one or more round trips."""

    #: `deeds` in stored checkpoints.
    action_records: Annotated[list[ActionRecord], Field(alias="deeds")] = field(default_factory=list)
    goal_changes: list[GoalChange] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    #: The model's thinking.
    reasoning: str = ""

    @property
    def results(self) -> list[ActionResult]:
        return [record.result for record in self.action_records]

    def followed_by(self, later: RoundTripRecord) -> RoundTripRecord:
        return RoundTripRecord(
            action_records=[*self.action_records, *later.action_records],
            goal_changes=[*self.goal_changes, *later.goal_changes],
            dropped=[*self.dropped, *later.dropped],
            repairs=[*self.repairs, *later.repairs],
            reasoning="\n\n".join(filter(None, (self.reasoning, later.reasoning))),
        )
