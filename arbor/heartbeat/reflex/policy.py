"""The reflex policy: a deterministic substitute for a model, with the same situation and reply format.

The policy plans goals, executes their steps and completes them, stores what users say, reflects on memories that are new to
it, from one subject to the next, and rests when it can pay for nothing else. It creates no goals but for requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from arbor.goals.goal_rules import calls_for_work
from arbor.goals.values import (
    MAX_ACTIVE,
    MAX_NEW_PER_HEARTBEAT,
    MAX_QUEUED,
    GoalLayer,
    GoalSource,
    GoalState,
    text_key,
)
from arbor.heartbeat.budgets import amount_text
from arbor.heartbeat.reflex.choices import (
    GATHER,
    NEEDED,
    SUMMED_UP,
    Draft,
    answer_steps,
    decide_proposals,
    excerpt,
    execute_intent,
    gist,
    lead_of,
    possible_action,
    procedure_for,
    query_of,
)
from arbor.heartbeat.reflex.reflection import consolidate, question_about, think
from arbor.heartbeat.replies.reply import GoalUpdate, MemoryNote, ProposedGoal
from arbor.heartbeat.situation import USER_MESSAGE, Mode, Situation
from arbor.heartbeat.sources import is_own_event
from arbor.heartbeat.views import GoalView
from arbor.quotations import counted, quoted
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive

# Phrases of a request.
_REQUEST = re.compile(
    r"\?|\b(please|can you|could you|would you|remind me|help me|find out|make sure)\b", re.IGNORECASE
)

# The plan of any goal: the permitted ones of these steps, in a rotation of this order.
_STEPS: Mapping[str, str] = {
    "recall": f"{GATHER} {{goal}}",
    "connect": "Tie together what I found about {goal}",
    "synthesize": f"{SUMMED_UP} {{goal}}",
    "reflect": "Work out what {goal} still needs",
    "remember": "Write down where {goal} stands",
}
#: Steps that a plan of more than `_MAX_STEPS` does without, the first of them first.
_DISPENSABLE = ("remember", "reflect")
_MAX_STEPS = 3
#: The most progress of a goal with steps to go.
_MOST_WITH_STEPS = 0.99
#: The beginning of the policy's concerns, and the modes in which it finds out whether they still hold.
_WORRY = "None of the actions I am allowed"
_WORRYING = frozenset({Mode.PLAN_EXECUTION, Mode.GOAL_PURSUIT, Mode.REFLECTION})


def reflex_reply(situation_json: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply, in its schema, to a situation (JSON of `Situation`), with offered and affordable actions only."""
    situation = Situation.model_validate(situation_json)
    draft = Draft(situation)
    _POLICIES[situation.mode](situation, draft)
    answer_steps(situation, draft)
    decide_proposals(situation.proposals, draft)
    if situation.mode in _WORRYING:
        # A concern that stays would be the subject of the recall for ever.
        draft.reply.resolved.extend(
            concern
            for concern in situation.working_memory.concerns
            if concern.startswith(_WORRY) and concern not in draft.reply.concerns
        )
    if not draft.reply.actions and draft.offers("rest"):
        draft.add_action("rest", {}, "There is nothing I can afford that is worth doing.")
    return draft.to_json()


def _converse(situation: Situation, draft: Draft) -> None:
    """Store the percepts, recall memories about the last one, and make goals of the requests, at most as many as a heartbeat adds."""
    percepts = situation.percepts
    if not percepts:
        draft.add_thought("Somebody is waiting for me, but nothing they said has reached me yet.")
    known = {text_key(goal.title) for goal in situation.goals}
    for percept in percepts:
        quote = excerpt(percept.content, 300)
        draft.add_thought(f"I was told: {quoted(quote)}")
        violated = [
            match.boundary
            for match in situation.boundary_matches
            if match.about == percept.id and match.response is not BoundaryResponse.FLAG
        ]
        if violated:
            draft.add_thought(f"I do not do that: it crosses my boundary {', '.join(violated)}.")
            continue
        text = f"{percept.kind.replace('_', ' ').capitalize()}: “{percept.content.strip()[:2_000]}”"
        params = {"content": text, "type": "episodic", "importance": 0.7}
        if not draft.add_action("remember", params, "What is said to me is worth keeping."):
            draft.reply.memory_notes.append(MemoryNote(text=text))
        title = excerpt(f"See to it: {quote}", 120)
        is_request = _REQUEST.search(percept.content) and not is_own_event(percept)
        if not is_request or text_key(title) in known:
            continue
        if len(draft.reply.new_goals) >= MAX_NEW_PER_HEARTBEAT:
            draft.add_thought("That is more than I can take up at once.")
            continue
        known.add(text_key(title))
        draft.reply.new_goals.append(
            ProposedGoal(
                title=title,
                description=f"Whoever asked has what they need: {quoted(quote)}",
                layer=GoalLayer.TASK,
                source=GoalSource.USER_REQUEST if percept.kind == USER_MESSAGE else GoalSource.EXTERNAL,
            )
        )
    if percepts:
        draft.add_action("recall", query_of(percepts[-1].content), "What do I know about this?")
        if lead := lead_of([percepts[-1].content], avoid=situation):
            draft.reply.curiosity.append(question_about(lead))
    if situation.relevant:
        draft.add_thought(f"It reminds me of {quoted(gist(situation.relevant[0]))}.")


def _plan(situation: Situation, draft: Draft) -> None:
    goals = _work(situation)
    if not goals:
        _reflect(situation, draft)
        return
    goal = goals[0]
    chosen = _steps_for(goal, draft)
    draft.add_thought(f"{quoted(goal.title)} is {goal.fraction:.0%} done and nothing is planned for it.")
    if goal.description:
        draft.add_thought(f"It is done when: {excerpt(goal.description)}")
    if not chosen:
        draft.reply.concerns.append(f"{_WORRY} brings {quoted(excerpt(goal.title))} forward.")
        return
    procedure = procedure_for(goal.title, situation)
    if procedure is not None:
        draft.add_thought(f"I know how to go about it: {quoted(gist(procedure))}.")
    draft.decompose(
        goal.id,
        {name: _STEPS[name].format(goal=quoted(excerpt(goal.title))) for name in chosen},
        procedure=procedure,
    )
    draft.reply.goal_updates.append(
        GoalUpdate(goal_id=goal.id, note=f"Planned {_steps(len(chosen))}: {', '.join(chosen)}.")
    )
    draft.add_action(
        "recall", query_of(goal.title, goal.description), "A first look at what I know.", goal_id=goal.id
    )
    if goal.description:
        insight = f"{NEEDED} {quoted(excerpt(goal.title))}, I need: {excerpt(goal.description)}"
        draft.add_action(
            "reflect", {"insight": insight, "focus": None}, "What does it take?", goal_id=goal.id
        )


def _work(situation: Situation) -> list[GoalView]:
    """Return the active goals that a plan can complete, the most important first; not those whose plan waits."""
    waiting = situation.waiting_goals
    return [
        goal
        for goal in situation.active_goals
        if calls_for_work(goal.layer, goal.rule) and goal.id not in waiting
    ]


def _steps_for(goal: GoalView, draft: Draft) -> list[str]:
    """Return the actions of a goal's plan, rotated with the heartbeats spent on the goal: where one plan failed, another order may not."""
    steps = [name for name in _STEPS if draft.offers(name)]
    for name in _DISPENSABLE:
        if len(steps) > _MAX_STEPS and name in steps:
            steps.remove(name)
    # The quotient too, because failed plans may take the same multiple of the number of steps each.
    turn = (goal.effort + goal.effort // len(steps)) % len(steps) if steps else 0
    return (steps[turn:] + steps[:turn])[:_MAX_STEPS]


def _pursue(situation: Situation, draft: Draft) -> None:
    """Execute the next steps of the most important goal that has one, as far as the energy lasts."""
    pending = situation.pending_intents
    goal_ids = {intent.goal_id for intent in pending}
    goal = next((goal for goal in situation.active_goals if goal.id in goal_ids), None)
    if goal is None:
        _plan(situation, draft)
        return
    steps = [intent for intent in pending if intent.goal_id == goal.id]
    draft.add_thought(
        f"I am on {quoted(goal.title)} ({goal.fraction:.0%} done). Next: {excerpt(steps[0].description, 200)}"
    )
    done = 0
    for intent in steps:
        # Two steps by the same action would have the same result.
        if intent.action in draft.chosen or not execute_intent(intent, goal, situation, draft):
            break
        done += 1
    if not done and possible_action(steps[0], goal, situation, draft) is None:
        draft.reply.concerns.append(f"{_WORRY} carries out the step {quoted(excerpt(steps[0].description))}.")
        return
    if not done:
        draft.add_thought("I have too little energy for it now, so I wait.")
        return
    draft.reply.goal_updates.append(_progress(goal, [intent.description for intent in steps], done))


def _progress(goal: GoalView, steps: list[str], done: int) -> GoalUpdate:
    """Return the update of a goal after the first `done` of its pending steps; only a goal that calls for work is completed."""
    left = len(steps) - done
    finished = " and ".join(quoted(excerpt(step)) for step in steps[:done])
    if left or not calls_for_work(goal.layer, goal.rule):
        # Rounded to 1, the progress of plan after plan would complete the goal.
        reached = min(round(goal.fraction + (1 - goal.fraction) * done / len(steps), 3), _MOST_WITH_STEPS)
        fraction = reached if left and reached > goal.fraction else None
        to_go = f"; {_steps(left)} to go" if left else ""
        return GoalUpdate(goal_id=goal.id, progress=fraction, note=f"Did {finished}{to_go}.")
    reason = f"Every step of {quoted(excerpt(goal.title))} is done."
    return GoalUpdate(goal_id=goal.id, progress=1.0, note=reason, state=GoalState.COMPLETED, reason=reason)


def _steps(count: int) -> str:
    return counted(count, "step")


def _reflect(situation: Situation, draft: Draft) -> None:
    """Activate a waiting goal, or else rest or reflect."""
    if _activate_goal(situation, draft):
        return
    is_tired = any(drive.name is Drive.REST and drive.urgent for drive in situation.drives)
    if is_tired and draft.add_action("rest", {}, "I have worked on and on."):
        draft.add_thought(
            f"I have worked enough for now; {amount_text(situation.energy, situation.energy_unit)} will keep."
        )
        return
    think(situation, draft)


def _activate_goal(situation: Situation, draft: Draft) -> bool:
    """Move the best waiting goal one step up, if no active goal is work; return whether it moves."""
    if _work(situation):
        return False
    for state, up in ((GoalState.QUEUED, GoalState.ACTIVE), (GoalState.BACKBURNER, GoalState.QUEUED)):
        waiting = [
            goal
            for goal in situation.goals_in(state)
            if calls_for_work(goal.layer, goal.rule) and not goal.blocked_by
        ]
        if not waiting:
            continue
        goal = waiting[0]
        reason = f"{quoted(excerpt(goal.title))} has waited long enough."
        active, queued = situation.active_goals, situation.goals_in(GoalState.QUEUED)
        aspirations = [other for other in active if other.layer is GoalLayer.ASPIRATION]
        is_full = up is GoalState.ACTIVE and len(active) >= MAX_ACTIVE
        if is_full and not aspirations:
            return False
        if (is_full or up is GoalState.QUEUED) and len(queued) >= MAX_QUEUED:
            _move([other for other in queued if other is not goal][-1], GoalState.BACKBURNER, reason, draft)
        if is_full:
            # Aspirations never end, so the goal would wait for ever.
            _move(aspirations[-1], GoalState.QUEUED, reason, draft)
        _move(goal, up, reason, draft)
        draft.add_thought(f"I have time for {quoted(goal.title)}.")
        return True
    return False


def _move(goal: GoalView, to: GoalState, reason: str, draft: Draft) -> None:
    params = {"goal_id": goal.id, "state": to.value}
    if not draft.add_action("reprioritize", params, reason, goal_id=goal.id):
        draft.reply.goal_updates.append(GoalUpdate(goal_id=goal.id, state=to, reason=reason))


_POLICIES: Mapping[Mode, Callable[[Situation, Draft], None]] = {
    Mode.CONVERSATION: _converse,
    Mode.PLAN_EXECUTION: _plan,
    Mode.GOAL_PURSUIT: _pursue,
    Mode.CONSOLIDATION: consolidate,
    Mode.REFLECTION: _reflect,
}
