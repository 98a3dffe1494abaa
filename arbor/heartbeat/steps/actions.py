"""Execute the decided actions in order, and record their results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from arbor.authority.grants import AUDIT_RESOURCE
from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.errors import ArborError
from arbor.goals.backlog import Backlog
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalSource, GoalState, NewGoalRequest
from arbor.heartbeat.decision import Decision, DecisionVerdict, deny
from arbor.heartbeat.needs import (
    Materials,
    OpenBacklog,
    PartialRecalls,
    PlacedMemories,
    Placing,
    Service,
    SourceSearch,
)
from arbor.heartbeat.own_past import own_past_filter, recall_memories
from arbor.heartbeat.results import (
    QUOTE_LENGTH,
    ActionOutcome,
    ActionRecord,
    ActionResult,
    GoalChange,
    GoalChangeKind,
    action_result,
    blocked_result,
)
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import new_memories
from arbor.heartbeat.steps.authority import apply_trust, denial, may_use, verify, with_approvals
from arbor.heartbeat.steps.inquiries import inquire, pending_work
from arbor.heartbeat.steps.orientation import memory_view
from arbor.heartbeat.steps.round_trips import with_percepts_received
from arbor.heartbeat.steps.tool_calls import begin_tool_call, pending_tool_calls
from arbor.ids import read_id
from arbor.knowledge.merging import (
    MAX_RESULTS,
    SEARCH_KNOWLEDGE,
    SEARCH_MY_MEMORIES,
    MemorySearch,
    SearchSource,
    SourceResult,
)
from arbor.memory.episodes import summarized_episode
from arbor.memory.trust import Evidence
from arbor.memory.values import Recalled
from arbor.pipeline.engine import NodeResult, Steps
from arbor.quotations import counted, line, quoted, shorten
from arbor.tools.names import is_tool_action
from arbor.values import replace
from arbor.workflows.values import COMPLETE_STEP, START_WORKFLOW

#: Characters of a recalled memory in the next round trip.
RECALLED_LENGTH = 600
#: Characters of a search result in the next round trip, and of a line of a memory's detail, such as all steps of a procedure.
DETAIL_LENGTH = 1_200

#: The execution of one action: yields its needs, returns its result.
type Act = Generator[Any, Any, ActionResult]


@dataclass(kw_only=True)
class Execution:
    """The running actions of one round trip."""

    heartbeat: HeartbeatState
    goal_changes: list[GoalChange] = field(default_factory=list)
    backlog: Backlog | None = None
    #: Ids of the grants that actions have used and that limit their uses, once for each use.
    used: list[str] = field(default_factory=list)


def act(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Verify and execute the decisions; a failed action costs its energy and changes nothing else."""
    execution = Execution(heartbeat=heartbeat)
    results: list[ActionResult] = []
    decisions: list[Decision] = []
    for decided in heartbeat.decisions:
        # Once more, because the trust in the agent may have changed since the decision.
        decision = apply_trust(heartbeat, decided, decisions) if decided.runs else decided
        decision = _verified(execution, decision) if decision.runs else decision
        decisions.append(decision)
        results.append(
            (yield from _execute(execution, decision)) if decision.runs else blocked_result(decision)
        )
    heartbeat = replace(execution.heartbeat, decisions=decisions, signed=None)
    denied = [
        denial(heartbeat, decision)
        for decision in decisions
        if decision.verdict in (DecisionVerdict.NOT_AUTHORIZED, DecisionVerdict.REFLEX)
    ]
    energy = heartbeat.energy
    for result in results:
        energy = heartbeat.budget.spend(energy, result.cost)
    # Rests of all round trips count.
    rests = heartbeat.rests + sum(
        result.action == "rest" and result.outcome is ActionOutcome.SUCCESS for result in results
    )
    action_records = [
        ActionRecord(decision=decision, result=result, turn=max(heartbeat.turn, 1))
        for decision, result in zip(heartbeat.decisions, results, strict=True)
    ]
    heartbeat = heartbeat.with_present(
        action_records=action_records, goal_changes=[*heartbeat.present.goal_changes, *execution.goal_changes]
    ).with_state(**heartbeat.budget.settle(energy, rests=rests))
    if execution.backlog is not None:
        heartbeat = heartbeat.with_effects(backlog=execution.backlog)
    # The actions are committed with the leg, so the same percepts must not cause them again.
    heartbeat = replace(
        with_percepts_received(
            with_approvals(heartbeat.with_effects(audit=denied, capability_uses=execution.used))
        ),
        energy_end=energy,
        rests=rests,
        work=pending_work(heartbeat.decisions, results),
        tool_calls=pending_tool_calls(heartbeat.situation, heartbeat.decisions, results),
    )
    changed = tuple(
        f"{result.action}: {result.summary}" for result in results if result.cost or result.memory_ids
    )
    return NodeResult(state=heartbeat, changed=changed)


def _verified(execution: Execution, decision: Decision) -> Decision:
    """Return the decision, refused unless it is the one that was signed and a grant covers it now."""
    authorization = verify(execution.heartbeat, decision, execution.used)
    if not authorization.granted:
        return deny(decision, authorization)
    if authorization.counted:
        execution.used.append(authorization.capability_id)
    return decision.model_copy(update={"capability_id": authorization.capability_id})


def _execute(execution: Execution, decision: Decision) -> Act:
    """Execute one action; an ArborError is its result, any other error ends the heartbeat."""
    try:
        if is_tool_action(decision.action):
            return begin_tool_call(decision)
        result = ACTS[decision.action](execution, decision)
        return result if isinstance(result, ActionResult) else (yield from result)
    except ArborError as error:
        # Nothing was written: all rules are checked before the first change.
        return action_result(decision, ActionOutcome.FAILURE, f"did not work: {error}")


def call_service(execution: Execution, decision: Decision) -> Act:
    """Have a service execute the action in the open transaction."""
    heartbeat = execution.heartbeat
    result: ActionResult = yield Service(
        decision=decision,
        situation=heartbeat.situation_now,
        vectors=heartbeat.vectors,
        model=heartbeat.embedding_model,
    )
    return result


def reach_out_user(execution: Execution, decision: Decision) -> Act:
    result = yield from call_service(execution, decision)
    if result.outcome is ActionOutcome.SUCCESS:
        execution.heartbeat = execution.heartbeat.with_state(last_reach_out_at=execution.heartbeat.now)
    return result


def recall(execution: Execution, decision: Decision) -> Act:
    heartbeat, query = execution.heartbeat, str(decision.params["query"])
    limit = int(decision.params["limit"])
    wanted = new_memories.recall_filter(decision.params, own_past_filter(heartbeat.situation))
    memories: list[Recalled] = yield from recall_memories(heartbeat, query, limit=limit, only=wanted)
    if not memories:
        return action_result(decision, ActionOutcome.PARTIAL, f"recalled nothing about {quoted(query)}")
    execution.heartbeat = replace(
        heartbeat.with_recall(memories), recalled=[*heartbeat.recalled, *map(memory_view, memories)]
    )
    clusters: list[str] = yield PartialRecalls(
        recalled=memories, vector=heartbeat.vectors.get(query), model=heartbeat.embedding_model
    )
    unclear = (
        f"; on the tip of the tongue: {'cluster' if len(clusters) == 1 else 'clusters'} {'; '.join(clusters)}"
    )
    return action_result(
        decision,
        ActionOutcome.SUCCESS,
        f"recalled {counted(len(memories), 'memory', 'memories')} about {quoted(query)}: {_glimpses(memories)}{unclear if clusters else ''}",
        [memory.id for memory in memories],
        brought="\n".join(text for memory in memories for text in _format_memory(memory)),
    )


def search(execution: Execution, decision: Decision) -> Act:
    """Search documents, or all that the agent may know; the result names what was not searched, or only in part."""
    heartbeat, query = execution.heartbeat, str(decision.params["query"])
    found: MemorySearch = yield SourceSearch(
        agent_id=heartbeat.agent_id,
        text=query,
        limit=MAX_RESULTS,
        now=heartbeat.now,
        vector=heartbeat.vectors.get(query),
        model=heartbeat.embedding_model,
        audit=may_use(heartbeat, AUDIT_RESOURCE),
        documents_only=decision.action == SEARCH_KNOWLEDGE,
    )
    notes = "".join(f"; {note}" for note in found.notes)
    if not found.results:
        return action_result(decision, ActionOutcome.PARTIAL, f"found nothing about {quoted(query)}{notes}")
    memories = [read_id(result.id) for result in found.results if result.source is SearchSource.MEMORY]
    return action_result(
        decision,
        ActionOutcome.PARTIAL if found.faults else ActionOutcome.SUCCESS,
        f"found {counted(len(found.results), 'result')} about {quoted(query)}: {_glimpses(found.results)}{notes}",
        [memory_id for memory_id in memories if memory_id is not None],
        brought="\n".join([*map(_format_result, found.results), *found.notes]),
    )


def _glimpses(found: Sequence[Recalled | SourceResult]) -> str:
    return "; ".join(shorten(result.content, QUOTE_LENGTH) for result in found[:3])


def _format_result(result: SourceResult) -> str:
    source = result.citation or "your memory"
    return f"[{result.id}] {line(source)}, {result.at:%Y-%m-%d}: {line(result.content, DETAIL_LENGTH)}"


def _format_memory(memory: Recalled) -> Iterator[str]:
    """Yield a memory as lines of the next round trip: its text, and what its detail says."""
    sender = f", from {memory.role}" if memory.role else ""
    if episode_id := summarized_episode(memory.session):
        sender += f", summary of the episode {episode_id}"
    yield f"[{memory.id}] {memory.occurred_at:%Y-%m-%d %H:%M}, {memory.type}{sender}: {line(memory.content, RECALLED_LENGTH)}"
    for detail in memory.details:
        yield f"    {line(detail, DETAIL_LENGTH)}"


def store_memory(execution: Execution, decision: Decision) -> Act:
    """Store a new memory, linked to the memories that it is made from."""
    heartbeat = execution.heartbeat
    wanted = new_memories.MEMORY_BUILDERS[decision.action](heartbeat, decision)
    materials: Mapping[UUID, Evidence] = {}
    if wanted.materials:
        materials = yield Materials(named=wanted.materials)
    memory = wanted.with_source(heartbeat.situation_now, materials.values())
    placed: PlacedMemories = yield Placing(
        memories=[memory],
        vectors=new_memories.vectors_of([memory.content], heartbeat.vectors),
        model=heartbeat.embedding_model,
    )
    made_from = tuple(sorted(materials.keys() - {placed.ids[0]}))
    if made_from:
        execution.heartbeat = heartbeat.with_effects(derived=((placed.ids[0], made_from),))
    if not placed.fresh:
        return action_result(decision, ActionOutcome.PARTIAL, "knew that already", placed.ids)
    summary = f"{wanted.verb}: {shorten(wanted.memory.content, QUOTE_LENGTH)}"
    return action_result(decision, ActionOutcome.SUCCESS, summary, placed.ids)


def brainstorm_goals(execution: Execution, decision: Decision) -> Act:
    """Add potential goals (seed 004, 3.2.5); list those that the backlog refuses."""
    backlog = yield from _backlog(execution)
    created: list[GoalRow] = []
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
            refusals.append(f"could not add {quoted(shorten(wanted['title'], QUOTE_LENGTH))}: {error}")
            continue
        created.append(goal)
        _record(execution, goal, GoalChangeKind.CREATED, f"it is {goal.state}; it was thought of")
    added = [f"added {quoted(goal.title)}, {goal.state}" for goal in created]
    outcome = (
        ActionOutcome.FAILURE if not created else ActionOutcome.PARTIAL if refusals else ActionOutcome.SUCCESS
    )
    return action_result(decision, outcome, "; ".join([*added, *refusals]))


def reprioritize(execution: Execution, decision: Decision) -> Act:
    backlog = yield from _backlog(execution)
    goal = backlog.move(decision.params["goal_id"], GoalState(decision.params["state"]))
    _record(execution, goal, GoalChangeKind.MOVED, f"it is {goal.state}")
    return action_result(decision, ActionOutcome.SUCCESS, f"moved {quoted(goal.title)}, {goal.state} now")


def _backlog(execution: Execution) -> Generator[Any, Any, Backlog]:
    execution.backlog = yield OpenBacklog()
    assert execution.backlog is not None
    return execution.backlog


def _record(execution: Execution, goal: GoalRow, kind: GoalChangeKind, change: str) -> None:
    execution.goal_changes.append(
        GoalChange(goal_id=str(goal.id), title=goal.title, kind=kind, change=change)
    )


ACTS: Mapping[str, Callable[[Execution, Decision], Act | ActionResult]] = {
    "recall": recall,
    SEARCH_MY_MEMORIES: search,
    SEARCH_KNOWLEDGE: search,
    "observe": call_service,
    "remember": store_memory,
    "maintain": call_service,
    "synthesize": store_memory,
    "reflect": store_memory,
    "connect": call_service,
    "review_goals": call_service,
    "brainstorm_goals": brainstorm_goals,
    "reprioritize": reprioritize,
    # The step `work` continues an inquiry.
    "inquire_shallow": lambda _, decision: inquire(decision),
    "inquire_deep": lambda _, decision: inquire(decision),
    REACH_OUT_USER: reach_out_user,
    REACH_OUT_AGENT: call_service,
    REACH_OUT_PUBLIC: call_service,
    START_WORKFLOW: call_service,
    COMPLETE_STEP: call_service,
    "rest": lambda _, decision: action_result(decision, ActionOutcome.SUCCESS, "rested"),
}
