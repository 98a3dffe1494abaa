"""The reflex policy: a deterministic substitute for a model, with the same situation and reply format.

The policy plans goals, executes their steps and completes them, stores what users say, connects memories, and rests when
it can pay for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from arbor.goals.values import GoalLayer, GoalSource, GoalState, title_key
from arbor.heartbeat.quotations import quoted
from arbor.heartbeat.reflex_choices import (
    Draft,
    connection,
    decide_proposals,
    excerpt,
    execute_intent,
    first_hand_memories,
    gist,
    most_similar_pair,
    potential_goals,
    query_of,
)
from arbor.heartbeat.reply import GoalUpdate, MemoryNote, ProposedGoal
from arbor.heartbeat.situation import Mode, Situation
from arbor.selves.boundaries import BoundaryResponse

# Phrases of a request.
_REQUEST = re.compile(
    r"\?|\b(please|can you|could you|would you|remind me|help me|find out|make sure)\b", re.IGNORECASE
)

# The plan of any goal: the permitted ones of these steps, in this order.
_STEPS: Mapping[str, str] = {
    "recall": "Gather what I already know about {goal}",
    "reflect": "Work out what {goal} still needs",
    "connect": "Tie together what I found about {goal}",
    "remember": "Write down where {goal} stands",
}
_MAX_STEPS = 3
_MAX_PERCEPTS = 3


def reflex_reply(situation_json: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply in REPLY_SCHEMA to a situation (JSON of `Situation`), with offered and affordable actions only."""
    situation = Situation.model_validate(situation_json)
    draft = Draft(situation)
    _POLICIES[situation.mode](situation, draft)
    decide_proposals(situation.proposals, draft)
    if not draft.actions and draft.offers("rest"):
        draft.add_action("rest", {}, "There is nothing I can afford that is worth doing.")
    return draft.reply()


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
            draft.notes.append(MemoryNote(text=text))
        title = excerpt(f"See to it: {quote}", 120)
        if _REQUEST.search(percept.content) and title_key(title) not in known:
            known.add(title_key(title))
            draft.new_goals.append(
                ProposedGoal(
                    title=title,
                    description=f"Whoever asked has what they need: {quoted(quote)}",
                    layer=GoalLayer.TASK,
                    source=GoalSource.USER_REQUEST,
                )
            )
    if percepts:
        draft.add_action("recall", query_of(percepts[-1].content), "What do I know about this?")
    if situation.relevant:
        draft.add_thought(f"It reminds me of {quoted(gist(situation.relevant[0]))}.")


def _plan(situation: Situation, draft: Draft) -> None:
    """Break the most important goal into steps."""
    goals = situation.active_goals
    if not goals:
        _reflect(situation, draft)
        return
    goal = goals[0]
    steps = [name for name in _STEPS if draft.offers(name)]
    turn = len(goal.notes) % len(steps) if steps else 0
    chosen = (steps[turn:] + steps[:turn])[:_MAX_STEPS]
    draft.add_thought(f"{quoted(goal.title)} is {goal.fraction:.0%} done and nothing is planned for it.")
    if goal.description:
        draft.add_thought(f"It is done when: {excerpt(goal.description)}")
    if not chosen:
        draft.concerns.append(
            f"None of the actions I am allowed brings {quoted(excerpt(goal.title))} forward."
        )
        return
    draft.decompose(
        goal.id, [(name, _STEPS[name].format(goal=quoted(excerpt(goal.title)))) for name in chosen]
    )
    draft.updates.append(
        GoalUpdate(goal_id=goal.id, note=f"Planned {len(chosen)} steps: {', '.join(chosen)}.")
    )
    draft.add_action(
        "recall", query_of(goal.title, goal.description), "A first look at what I know.", goal_id=goal.id
    )


def _pursue(situation: Situation, draft: Draft) -> None:
    """Carry out the next step of the most important goal that has one."""
    pending = situation.pending_intents
    goal = next((g for g in situation.active_goals if any(i.goal_id == g.id for i in pending)), None)
    if goal is None:
        _plan(situation, draft)
        return
    steps = [intent for intent in pending if intent.goal_id == goal.id]
    intent = steps[0]
    draft.add_thought(
        f"I am on {quoted(goal.title)} ({goal.fraction:.0%} done). Next: {excerpt(intent.description, 200)}"
    )
    done = execute_intent(intent, goal, situation, draft)
    if not done:
        draft.add_thought("I have too little energy for it now, so I wait.")
        return
    fraction = round(goal.fraction + (1 - goal.fraction) / len(steps), 3)
    reason = f"Every step of {quoted(excerpt(goal.title))} is done."
    update = GoalUpdate(goal_id=goal.id, progress=1.0, note=reason, state=GoalState.COMPLETED, reason=reason)
    if len(steps) > 1:
        note = f"Did {quoted(excerpt(intent.description))}; {len(steps) - 1} steps to go."
        update = GoalUpdate(goal_id=goal.id, progress=fraction, note=note)
    draft.updates.append(update)


def _consolidate(situation: Situation, draft: Draft) -> None:
    """Connect two memories that share words, and reflect on them."""
    pair = most_similar_pair(situation)
    if pair is None:
        draft.add_thought("I see too few memories to tie any together.")
        return
    first, second, shared = pair
    about = ", ".join(shared[:3]) or "the same time"
    both = f"{quoted(gist(first))} and {quoted(gist(second))}"
    draft.add_thought(f"{both} both speak of {about}.")
    draft.add_action("connect", connection(first, second), f"Both speak of {about}.")
    insight = f"Looking back at heartbeat {situation.beat_number}, {about} comes up again: {both}."
    params = {"insight": insight, "focus": about, "rests_on": [first.id, second.id]}
    draft.add_action("reflect", params, "A pattern is worth keeping.")


def _reflect(situation: Situation, draft: Draft) -> None:
    """Reflect on a memory, and make sure that there is a goal."""
    memory = situation.working_memory
    question = memory.curiosity[-1] if memory.curiosity else ""
    views = first_hand_memories(situation)
    draft.add_thought(f"Nothing presses at heartbeat {situation.beat_number}.")
    if question:
        draft.add_thought(f"I still wonder: {excerpt(question)}")
    if views:
        # Each heartbeat chooses another memory, so that reflections differ.
        view = views[situation.beat_number % len(views)]
        quote = f"{view.role} said {quoted(gist(view))}" if view.role else quoted(gist(view))
        draft.add_thought(f"I think of this: {quote}")
        insight = f"What stays with me is this: {quote}." + (
            f" I wonder: {excerpt(question)}" if question else ""
        )
        draft.add_action(
            "reflect", {"insight": insight, "focus": excerpt(question) or None}, "To see what matters in it."
        )
        draft.curiosity.append(f"What follows from {quoted(excerpt(gist(view), 80))}?")
    _choose_goal(situation, draft, question or (gist(views[0]) if views else ""))


def _choose_goal(situation: Situation, draft: Draft, about: str) -> None:
    """Promote the best waiting goal, or brainstorm new ones."""
    if situation.active_goals:
        return
    for state, up in ((GoalState.QUEUED, GoalState.ACTIVE), (GoalState.BACKBURNER, GoalState.QUEUED)):
        waiting = situation.goals_in(state)
        if waiting:
            goal = waiting[0]
            draft.add_thought(f"I have time for {quoted(goal.title)}.")
            params = {"goal_id": goal.id, "state": up.value}
            draft.add_action(
                "reprioritize",
                params,
                f"{quoted(excerpt(goal.title))} has waited long enough.",
                goal_id=goal.id,
            )
            return
    goals = potential_goals(about or f"what being {situation.name} is for")
    if not draft.add_action("brainstorm_goals", {"goals": goals}, "I want nothing yet."):
        first = goals[0]
        draft.new_goals.append(ProposedGoal(title=first["title"], description=first["description"]))


_POLICIES: Mapping[Mode, Callable[[Situation, Draft], None]] = {
    Mode.CONVERSATION: _converse,
    Mode.PLAN_EXECUTION: _plan,
    Mode.GOAL_PURSUIT: _pursue,
    Mode.CONSOLIDATION: _consolidate,
    Mode.REFLECTION: _reflect,
}
