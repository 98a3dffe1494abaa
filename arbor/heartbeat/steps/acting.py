"""Acting: carry out each decided action, in order, and record its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from arbor.errors import ArborError
from arbor.goals.backlog import Backlog
from arbor.goals.requests import NewGoalRequest
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalSource, GoalState
from arbor.heartbeat.beat import Beat
from arbor.heartbeat.decision import Decision, Verdict
from arbor.heartbeat.effects import AuditNote
from arbor.heartbeat.needs import OpenBacklog, OwnMemories, Placed, Service, Themes
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.record import Deed
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind, answer, refused
from arbor.heartbeat.sections.text import line
from arbor.heartbeat.steps import making
from arbor.heartbeat.steps.following import taken_in
from arbor.heartbeat.steps.inquiring import inquire, pending_work
from arbor.heartbeat.steps.orientation import NOT_OWN_BEATS
from arbor.memory.recall_request import RecallRequest
from arbor.memory.values import Recalled
from arbor.pipeline.engine import NodeResult, Steps
from arbor.values import replace

#: The length of a text within the line that the agent reads at its next beat.
GLIMPSE = 160
#: The length of each memory that is found, as the agent reads it before it goes on.
READ_LENGTH = 600
#: The `AuditAction` of an action that the agent's template does not allow.
_DENIED = "denied"

#: One action: yields its needs, returns its result.
type Act = Generator[Any, Any, ActionResult]


@dataclass(kw_only=True)
class Doing:
    """The actions of one turn, under way."""

    beat: Beat
    goal_changes: list[GoalChange] = field(default_factory=list)
    backlog: Backlog | None = None

    @property
    def situation(self) -> Any:
        """Return what the agent sees."""
        return self.beat.situation


def act(beat: Beat) -> Steps[Beat]:
    """Carry out the decisions; an action that fails costs its energy and changes nothing else."""
    doing = Doing(beat=beat)
    results: list[ActionResult] = []
    for decision in beat.decisions:
        results.append((yield from _carry_out(doing, decision)) if decision.runs else refused(decision))
    beat = doing.beat
    denied = [
        _denial(beat, decision) for decision in beat.decisions if decision.verdict is Verdict.NOT_PERMITTED
    ]
    energy = beat.energy
    for result in results:
        energy = beat.budget.spend(energy, result.cost)
    # A beat may take several turns: it has rested as often as in all of them.
    rests = beat.rests + sum(
        result.action == "rest" and result.outcome is ActionOutcome.SUCCESS for result in results
    )
    deeds = [
        Deed(decision=decision, result=result, turn=max(beat.turn, 1))
        for decision, result in zip(beat.decisions, results, strict=True)
    ]
    beat = beat.with_present(
        deeds=deeds, goal_changes=[*beat.present.goal_changes, *doing.goal_changes]
    ).with_state(**beat.budget.settle(energy, rests=rests))
    if doing.backlog is not None:
        beat = beat.bringing(backlog=doing.backlog)
    # Whatever becomes of the beat: its actions are written with the leg, and shall not be done again for the same percepts.
    beat = replace(
        taken_in(beat.bringing(audit=denied)),
        energy_end=energy,
        rests=rests,
        work=pending_work(beat.decisions, results),
    )
    changed = tuple(
        f"{result.action}: {result.summary}" for result in results if result.cost or result.memory_ids
    )
    return NodeResult(state=beat, changed=changed)


def _denial(beat: Beat, decision: Decision) -> AuditNote:
    return AuditNote(
        action=_DENIED,
        message=f"{decision.action}: {decision.reason}",
        detail={"heartbeat_id": str(beat.heartbeat_id)},
    )


def _carry_out(doing: Doing, decision: Decision) -> Act:
    """Carry out one action; a refusal of the domain is its result, anything else is a fault and ends the beat."""
    try:
        return (yield from ACTS[decision.action](doing, decision))
    except ArborError as error:
        # Nothing was written: every rule is checked before the first change.
        return answer(decision, ActionOutcome.FAILURE, f"did not work: {error}")


def rest(_: Doing, decision: Decision) -> Act:
    """Do nothing; the budget says what that is worth."""
    yield from ()
    return answer(decision, ActionOutcome.SUCCESS, "rested")


def begin_inquiry(_: Doing, decision: Decision) -> Act:
    """Begin an inquiry: the step `work` carries it on."""
    yield from ()
    return inquire(decision)


def serve(doing: Doing, decision: Decision) -> Act:
    """Have a service carry the action out at once."""
    beat = doing.beat
    result: ActionResult = yield Service(
        decision=decision, situation=beat.situation_now, vectors=beat.vectors, model=beat.embedding_model
    )
    return result


def reach_out_user(doing: Doing, decision: Decision) -> Act:
    """Write to the agent's users, and remember when."""
    result = yield from serve(doing, decision)
    if result.outcome is ActionOutcome.SUCCESS:
        doing.beat = doing.beat.with_state(last_reach_out_at=doing.beat.now)
    return result


def recall(doing: Doing, decision: Decision) -> Act:
    """Search the memory; what is found is there for the next look."""
    beat, query = doing.beat, str(decision.params["query"])
    vector = beat.vectors.get(query)
    found: list[Recalled] = yield RecallRequest(
        agent_id=beat.agent_id,
        text=query,
        vector=vector,
        model=beat.embedding_model,
        limit=decision.params["limit"],
        now=beat.now,
        only=making.only_of(decision.params, NOT_OWN_BEATS),
    )
    if not found:
        return answer(decision, ActionOutcome.PARTIAL, f"nothing came to mind about {query!r}")
    doing.beat = beat.bringing(recalls=({memory.id: memory.score for memory in found},))
    themes: list[str] = yield Themes(recalled=found, vector=vector, model=beat.embedding_model)
    glimpses = "; ".join(clip(memory.content, GLIMPSE) for memory in found[:3])
    unclear = f"; on the tip of the tongue: theme {'; '.join(themes)}"
    return answer(
        decision,
        ActionOutcome.SUCCESS,
        f"{len(found)} memories about {query!r}: {glimpses}{unclear if themes else ''}",
        [memory.id for memory in found],
        brought="\n".join(_read_out(memory) for memory in found),
    )


def _read_out(memory: Recalled) -> str:
    """Return a memory as the agent reads it before its beat goes on."""
    said = f", from {memory.role}" if memory.role else ""
    return f"[{memory.id}] {memory.occurred_at:%Y-%m-%d %H:%M}, {memory.type}{said}: {line(memory.content, READ_LENGTH)}"


def make(doing: Doing, decision: Decision) -> Act:
    """Store what the agent remembers, notices or makes, tied to the memories that it is made from."""
    beat = doing.beat
    wanted = making.MADE[decision.action](beat, decision)
    materials: Collection[UUID] = ()
    if wanted.materials:
        materials = yield OwnMemories(named=wanted.materials, required=True)
    placed: Placed = yield making.placing(beat, wanted.memory)
    made_from = tuple(sorted({memory_id for memory_id in materials if memory_id != placed.ids[0]}))
    if made_from:
        doing.beat = beat.bringing(derived=((placed.ids[0], made_from),))
    if not placed.fresh:
        return answer(decision, ActionOutcome.PARTIAL, "that was known already", placed.ids)
    summary = f"{wanted.verb}: {clip(wanted.memory.content, GLIMPSE)}"
    return answer(decision, ActionOutcome.SUCCESS, summary, placed.ids)


def brainstorm_goals(doing: Doing, decision: Decision) -> Act:
    """Add what the agent thought of (seed 004, 3.2.5), as far as the backlog has room; say what it refused."""
    backlog = yield from _backlog(doing)
    made: list[GoalRow] = []
    refusals: list[str] = []
    for wanted in decision.params["goals"]:
        why = f"\nWhy: {wanted['rationale']}" if wanted["rationale"] else ""
        request = NewGoalRequest(
            title=wanted["title"],
            description=f"{wanted['description']}{why}".strip(),
            source=GoalSource.CURIOSITY,
            state=GoalState(wanted["state"]),
        )
        try:
            goal = backlog.add(request)
        except ArborError as error:
            refusals.append(f"not {clip(wanted['title'], GLIMPSE)!r}: {error}")
            continue
        made.append(goal)
        _record(doing, goal, GoalChangeKind.CREATED, f"it is {goal.state}; it was thought of")
    added = [f"{goal.title!r} is {goal.state}" for goal in made]
    outcome = (
        ActionOutcome.FAILURE if not made else ActionOutcome.PARTIAL if refusals else ActionOutcome.SUCCESS
    )
    return answer(decision, outcome, "; ".join([*added, *refusals]))


def reprioritize(doing: Doing, decision: Decision) -> Act:
    """Move a goal in the backlog."""
    backlog = yield from _backlog(doing)
    goal = backlog.move(decision.params["goal_id"], GoalState(decision.params["state"]))
    _record(doing, goal, GoalChangeKind.MOVED, f"it is {goal.state}")
    return answer(decision, ActionOutcome.SUCCESS, f"{goal.title!r} is {goal.state} now")


def _backlog(doing: Doing) -> Generator[Any, Any, Backlog]:
    doing.backlog = yield OpenBacklog()
    assert doing.backlog is not None
    return doing.backlog


def _record(doing: Doing, goal: GoalRow, kind: GoalChangeKind, change: str) -> None:
    doing.goal_changes.append(GoalChange(goal_id=str(goal.id), title=goal.title, kind=kind, change=change))


ACTS: Mapping[str, Callable[[Doing, Decision], Act]] = {
    "recall": recall,
    "observe": serve,
    "remember": make,
    "maintain": serve,
    "synthesize": make,
    "reflect": make,
    "connect": serve,
    "review_goals": serve,
    "brainstorm_goals": brainstorm_goals,
    "reprioritize": reprioritize,
    "inquire_shallow": begin_inquiry,
    "inquire_deep": begin_inquiry,
    "reach_out_user": reach_out_user,
    "reach_out_public": serve,
    "rest": rest,
}
