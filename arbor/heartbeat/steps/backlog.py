"""Steps that change the backlog: goals of rules, plans, intents, and the changes of the reply."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from arbor.authority.reflexes import INQUIRIES
from arbor.errors import ArborError
from arbor.goals.backlog import Backlog
from arbor.goals.goal_rules import Circumstances, GoalRule, apply_goal_rules, has_recovered
from arbor.goals.ordering import PriorityInputs, compute_priority
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.influence import WORKFLOW_STEP
from arbor.heartbeat.needs import OpenBacklog, OwnMemories
from arbor.heartbeat.results import ActionOutcome, ActionResult
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.goal_changes import BacklogEditor, is_work
from arbor.heartbeat.usage import BudgetLevel
from arbor.heartbeat.views import GoalView
from arbor.ids import read_id
from arbor.memory.values import MemoryType
from arbor.pipeline.engine import NodeResult, Steps
from arbor.values import replace

#: The `PerceptKind` of events from the environment.
_ENVIRONMENT = "environment"
#: Verdicts that leave an intent pending and count no attempt.
_POSTPONING = (
    DecisionVerdict.AWAITS_APPROVAL,
    DecisionVerdict.TOO_LITTLE_ENERGY,
    DecisionVerdict.TOO_MANY,
    DecisionVerdict.TOO_SOON,
    DecisionVerdict.UNAVAILABLE,
)


def inject_goals(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Add the goals that rules create, and close the survival goal once its cause is over (seed 003, 10.1: orient)."""
    if heartbeat.opening is None:
        # A custom graph may run this step after the first leg.
        return NodeResult(state=heartbeat)
    situation, opening = heartbeat.situation, heartbeat.opening
    circumstances = _circumstances(heartbeat, opening.circumstances)
    to_inject = apply_goal_rules(circumstances)
    recovered = has_recovered(circumstances)
    ended = [goal for goal in situation.goals if recovered and goal.rule == GoalRule.SURVIVAL]
    if not (to_inject or ended):
        return NodeResult(state=heartbeat)
    backlog: Backlog = yield OpenBacklog()
    editor = BacklogEditor(heartbeat, backlog)
    added: list[GoalView] = []
    refused: list[str] = []
    for goal in ended:
        try:
            editor.conclude(goal.id, "there is enough again")
        except ArborError as error:
            refused.append(f"{goal.title}: not closed, because {error}")
    for injected in to_inject:
        try:
            added.append(_view(editor.inject(injected), opening.priority_inputs))
        except ArborError as error:
            refused.append(f"{injected.title}: not added, because {error}")
    result = editor.result()
    open_goals = [goal for goal in situation.goals if goal not in ended]
    # Sorted by descending priority, as in the situation.
    goals = sorted([*open_goals, *added], key=lambda goal: (-goal.priority, goal.id))
    return replace(
        result, state=result.state.with_situation(goals=goals), changed=(*result.changed, *refused)
    )


def store_decompositions(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Store the reply's decompositions as plans, and lock the intents that its actions execute."""
    intent_ids = [
        intent_id
        for decision in heartbeat.decisions
        if decision.runs and (intent_id := read_id(decision.intent_id))
    ]
    decompositions = heartbeat.reply_or_empty.decompositions
    # Discards the intents counted in the previous round trip.
    heartbeat = replace(heartbeat, counted=[])
    if not (intent_ids or decompositions):
        return NodeResult(state=heartbeat)
    named = [step.follows for part in decompositions for step in part.intentions if step.follows]
    procedures: Collection[UUID] = (
        (yield OwnMemories(named=named, type=MemoryType.PROCEDURAL)) if named else ()
    )
    backlog: Backlog = yield OpenBacklog()
    if intent_ids:
        backlog.lock_intents(
            intent_ids, again=[recorded for intent_id in heartbeat.served if (recorded := read_id(intent_id))]
        )
        counted = [key for key in dict.fromkeys(map(str, intent_ids)) if key not in heartbeat.served]
        heartbeat = replace(heartbeat, served=[*heartbeat.served, *counted], counted=counted)
    editor = BacklogEditor(heartbeat, backlog, procedures=procedures)
    paths = heartbeat.reply_or_empty.paths_of("decompositions", decompositions)
    for path, decomposition in zip(paths, decompositions, strict=True):
        editor.decompose(path, decomposition)
    return editor.result()


def goals(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Apply the reply's goal updates and new goals, the outcomes of intents, and the work of other actions on goals."""
    reply, results = heartbeat.reply_or_empty, heartbeat.present.results
    decisions = [record.decision for record in heartbeat.action_records]
    tried, blocked = _attempts_of(results, decisions, locked=heartbeat.served)
    for_goals = [result for result in results if not result.intent_id and is_work(result)]
    if not (tried or blocked or for_goals or reply.goal_updates or reply.new_goals):
        return NodeResult(state=heartbeat)
    backlog: Backlog = yield OpenBacklog()
    editor = BacklogEditor(heartbeat, backlog)
    for result in tried:
        editor.apply_result(editor.record_outcome, result)
    for result in blocked:
        editor.apply_result(editor.release, result)
    for result in for_goals:
        editor.count_action(result)
    paths = reply.paths_of("new_goals", reply.new_goals)
    for path, goal in zip(paths, reply.new_goals, strict=True):
        editor.apply(path, editor.add, goal)
    paths = reply.paths_of("goal_updates", reply.goal_updates)
    for path, update in zip(paths, reply.goal_updates, strict=True):
        editor.update(path, update)
    return editor.result()


def _attempts_of(
    results: Sequence[ActionResult], decisions: Sequence[Decision], *, locked: Collection[str]
) -> tuple[list[ActionResult], list[ActionResult]]:
    """Return the results of attempted intents, and of `locked` ones that were not tried: their action was blocked or postponed.

    Successes come first, because a failed step may end its plan.
    """
    verdicts = {decision.index: decision.verdict for decision in decisions}
    tried: list[ActionResult] = []
    blocked: list[ActionResult] = []
    for result in results:
        verdict = verdicts.get(result.index)
        if not result.intent_id:
            continue
        # An action may be put off after its intent was locked: the trust in the agent can change in between.
        is_postponed = verdict in _POSTPONING
        if is_postponed and str(read_id(result.intent_id)) not in locked:
            continue
        was_blocked = verdict is DecisionVerdict.RUN and result.outcome is ActionOutcome.BLOCKED
        was_blocked = was_blocked or is_postponed
        (blocked if was_blocked else tried).append(result)
    tried.sort(key=lambda result: result.outcome not in (ActionOutcome.SUCCESS, ActionOutcome.PARTIAL))
    return tried, blocked


def _view(goal: GoalRow, priority_inputs: PriorityInputs) -> GoalView:
    source = GoalSource(goal.source)
    priority = compute_priority(
        priority_inputs,
        source,
        fraction=goal.fraction,
        deadline=goal.deadline,
        stated_reward=goal.expected_reward,
        actions=(),
        stated=goal.priority,
    )
    return GoalView(
        id=str(goal.id),
        title=goal.title,
        description=goal.description,
        state=GoalState(goal.state),
        layer=GoalLayer(goal.layer),
        type=goal.type,
        source=source,
        priority=round(priority, 4),
        rule=goal.rule,
    )


def _circumstances(heartbeat: HeartbeatState, recorded: Circumstances) -> Circumstances:
    situation = heartbeat.situation
    return replace(
        recorded,
        open_titles=[goal.title for goal in situation.goals],
        open_rules=frozenset(goal.rule for goal in situation.goals if goal.rule),
        can_explore=not situation.model_is_reflex
        or any(offer.name in INQUIRIES for offer in situation.actions),
        has_aspiration=any(goal.layer is GoalLayer.ASPIRATION for goal in situation.goals),
        budget_runs_low=situation.degradation.rank >= BudgetLevel.DEGRADATION.rank,
        # A delegated step has a goal of its own, which ends with the step.
        chances=[
            percept.content
            for percept in situation.percepts
            if percept.kind == _ENVIRONMENT and WORKFLOW_STEP not in percept.detail
        ],
    )
