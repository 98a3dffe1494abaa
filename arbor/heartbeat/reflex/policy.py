"""The reflex policy: a deterministic substitute for a model, with the same situation and reply format.

The policy plans goals, executes their steps and completes them, stores what users say, reflects on memories that are new to
it (`arbor.heartbeat.reflex.reflection`), and rests when it can pay for nothing else. It creates no goals but for requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from arbor.goals.injection import calls_for_work
from arbor.goals.values import GoalLayer, GoalSource, GoalState, title_key
from arbor.heartbeat.reflex.choices import (
    NEEDED,
    Draft,
    answer_steps,
    decide_proposals,
    excerpt,
    execute_intent,
    gist,
    lead_of,
    procedure_for,
    query_of,
)
from arbor.heartbeat.reflex.reflection import consolidate, needs_rest, question_about, reflect
from arbor.heartbeat.replies.reply import GoalUpdate, MemoryNote, ProposedGoal
from arbor.heartbeat.situation import Mode, Situation
from arbor.heartbeat.views import GoalView
from arbor.quotations import quoted
from arbor.selves.boundaries import BoundaryResponse

# Phrases of a request.
_REQUEST = re.compile(
    r"\?|\b(please|can you|could you|would you|remind me|help me|find out|make sure)\b", re.IGNORECASE
)

# The plan of any goal: the permitted ones of these steps, in this order.
_STEPS: Mapping[str, str] = {
    "recall": "Gather what I already know about {goal}",
    "connect": "Tie together what I found about {goal}",
    "synthesize": "Sum up what I know about {goal}",
    "reflect": "Work out what {goal} still needs",
    "remember": "Write down where {goal} stands",
}
#: Steps that a plan of more than `_MAX_STEPS` does without, the first of them first.
_DISPENSABLE = ("remember", "reflect")
_MAX_STEPS = 3
_MAX_PERCEPTS = 3


def reflex_reply(situation_json: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply in REPLY_SCHEMA to a situation (JSON of `Situation`), with offered and affordable actions only."""
    situation = Situation.model_validate(situation_json)
    draft = Draft(situation)
    _POLICIES[situation.mode](situation, draft)
    answer_steps(situation, draft)
    decide_proposals(situation.proposals, draft)
    if not draft.reply.actions and draft.offers("rest"):
        draft.add_action("rest", {}, "There is nothing I can afford that is worth doing.")
    return draft.to_json()


def _converse(situation: Situation, draft: Draft) -> None:
    """Store the messages, recall memories about the last one, and make a goal of each request."""
    percepts = situation.percepts[-_MAX_PERCEPTS:]
    if not percepts:
        draft.add_thought("Somebody is waiting for me, but nothing they said has reached me yet.")
    known = {title_key(goal.title) for goal in situation.goals}
    for percept in percepts:
        quote = excerpt(percept.content, 300)
        draft.add_thought(f"I was told: {quoted(quote)}")
        violated = [
            crossing.boundary
            for crossing in situation.crossed
            if crossing.about == percept.id and crossing.response is not BoundaryResponse.FLAG
        ]
        if violated:
            draft.add_thought(f"I do not do that: it crosses my boundary {', '.join(violated)}.")
            continue
        text = f"{percept.kind.replace('_', ' ').capitalize()}: “{percept.content.strip()[:2_000]}”"
        params = {"content": text, "type": "episodic", "importance": 0.7}
        if not draft.add_action("remember", params, "What is said to me is worth keeping."):
            draft.reply.memory_notes.append(MemoryNote(text=text))
        title = excerpt(f"See to it: {quote}", 120)
        if _REQUEST.search(percept.content) and title_key(title) not in known:
            known.add(title_key(title))
            draft.reply.new_goals.append(
                ProposedGoal(
                    title=title,
                    description=f"Whoever asked has what they need: {quoted(quote)}",
                    layer=GoalLayer.TASK,
                    source=GoalSource.USER_REQUEST,
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
        draft.reply.concerns.append(
            f"None of the actions I am allowed brings {quoted(excerpt(goal.title))} forward."
        )
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
        GoalUpdate(goal_id=goal.id, note=f"Planned {len(chosen)} steps: {', '.join(chosen)}.")
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
    """Return the actions of a goal's plan; a second plan begins with another action than the first."""
    steps = [name for name in _STEPS if draft.offers(name)]
    for name in _DISPENSABLE:
        if len(steps) > _MAX_STEPS and name in steps:
            steps.remove(name)
    turn = len(goal.notes) % len(steps) if steps else 0
    return (steps[turn:] + steps[:turn])[:_MAX_STEPS]


def _pursue(situation: Situation, draft: Draft) -> None:
    """Execute the next steps of the most important goal that has one, as far as the energy lasts."""
    pending = situation.pending_intents
    goal = next((g for g in situation.active_goals if any(i.goal_id == g.id for i in pending)), None)
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
    if not done:
        draft.add_thought("I have too little energy for it now, so I wait.")
        return
    draft.reply.goal_updates.append(_progress(goal, [intent.description for intent in steps], done))


def _progress(goal: GoalView, steps: list[str], done: int) -> GoalUpdate:
    """Return the update of a goal after the first `done` of its pending steps; an aspiration is never completed."""
    left = len(steps) - done
    finished = " and ".join(quoted(excerpt(step)) for step in steps[:done])
    if left or not calls_for_work(goal.layer, goal.rule):
        fraction = round(goal.fraction + (1 - goal.fraction) * done / len(steps), 3) if left else None
        to_go = f"; {left} steps to go" if left else ""
        return GoalUpdate(goal_id=goal.id, progress=fraction, note=f"Did {finished}{to_go}.")
    reason = f"Every step of {quoted(excerpt(goal.title))} is done."
    return GoalUpdate(goal_id=goal.id, progress=1.0, note=reason, state=GoalState.COMPLETED, reason=reason)


def _reflect(situation: Situation, draft: Draft) -> None:
    """Activate a waiting goal, or else rest or reflect."""
    if _activate_goal(situation, draft):
        return
    if needs_rest(situation) and draft.add_action("rest", {}, "I have worked on and on."):
        draft.add_thought(
            f"I have worked enough for now; {situation.energy:g} {situation.energy_unit} will keep."
        )
        return
    reflect(situation, draft)


def _activate_goal(situation: Situation, draft: Draft) -> bool:
    """Move the best waiting goal one step up, if no active goal is work; return whether it moves."""
    if _work(situation):
        return False
    for state, up in ((GoalState.QUEUED, GoalState.ACTIVE), (GoalState.BACKBURNER, GoalState.QUEUED)):
        waiting = [goal for goal in situation.goals_in(state) if calls_for_work(goal.layer, goal.rule)]
        if not waiting:
            continue
        goal = waiting[0]
        reason = f"{quoted(excerpt(goal.title))} has waited long enough."
        params = {"goal_id": goal.id, "state": up.value}
        if not draft.add_action("reprioritize", params, reason, goal_id=goal.id):
            draft.reply.goal_updates.append(GoalUpdate(goal_id=goal.id, state=up, reason=reason))
        draft.add_thought(f"I have time for {quoted(goal.title)}.")
        return True
    return False


_POLICIES: Mapping[Mode, Callable[[Situation, Draft], None]] = {
    Mode.CONVERSATION: _converse,
    Mode.PLAN_EXECUTION: _plan,
    Mode.GOAL_PURSUIT: _pursue,
    Mode.CONSOLIDATION: consolidate,
    Mode.REFLECTION: _reflect,
}
