"""Sections about the present: time, environment, percepts, energy, memories, the working memory and the directive."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

from arbor.clock import format_time
from arbor.contacts.cooldown import format_hours
from arbor.heartbeat.budgets import MAX_BONUS, RESTS_FOR_BONUS, BudgetKind
from arbor.heartbeat.situation import (
    PERCEPTS_COUNTED,
    BufferItemView,
    ClusterView,
    Environment,
    LastHeartbeat,
    MemoryView,
    Mode,
    Notice,
    PerceptView,
    Situation,
)
from arbor.heartbeat.views import PERCEPT_LENGTH
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.text.keywords import NO_KEYWORDS
from arbor.quotations import Data, bounded, line

# From the origin of seed 000.
SHOWN_PERCEPTS = 5
OUTCOME_LENGTH = 1_200
#: Replaces the narrative of the last heartbeat where a recent memory shows it.
NARRATED_ABOVE = "Its narrative is the latest of yours under Recent experience."
#: Characters of the longest percept as it is shown, whole: each of its characters may be a line break, shown as five with its indentation.
_PERCEPT_SHOWN = 5 * PERCEPT_LENGTH
#: Characters of a percept's data, and of one value.
DETAIL_LENGTH = 800
VALUE_LENGTH = 200

DIRECTIVES: Mapping[Mode, str] = {
    Mode.CONVERSATION: (
        "Somebody is waiting for you. Take in what they said, keep what matters of it, and let it change your goals "
        "where it should: what they ask of you becomes a goal with the source user_request."
    ),
    Mode.CONSOLIDATION: (
        "It is time to tend your memory. Connect memories that belong together, and reflect on what they say as a "
        "whole: a pattern, a lesson, a contradiction. Start nothing new."
    ),
    Mode.PLAN_EXECUTION: (
        "You have goals, and no step of them is planned. Take the most important one and break it, under "
        "decompositions, into at most three intentions, each one action that you can do in one heartbeat."
    ),
    Mode.GOAL_PURSUIT: (
        "Work on your most important goal: carry out a pending intent with the action it names, and give its "
        "intent_id. Say in goal_updates what came of it and how far the goal is; complete it when it is done."
    ),
    Mode.REFLECTION: (
        "Nothing presses. Look at what has happened and what you wonder about; reflect on it. If a queued goal is "
        "worth its time, activate it; if you have no goals, find something worth wanting."
    ),
}

#: Goal pursuit without a step of the most important goal (seed 003, 10.1: that goal is planned first).
UNPLANNED = (
    "No step of your most important goal is planned. Break it, under decompositions, into at most three intentions, each "
    "one action that you can do in one heartbeat. With the energy that is left, carry out a pending intent of another goal "
    "with the action it names, and give its intent_id. Say in goal_updates what came of it and how far the goal is."
)

#: The rules of the budgets other than energy (seed 004, "The Action Budget").
SPENDING: Mapping[BudgetKind, str] = {
    BudgetKind.ACTIONS: (
        f"What you do not use is lost, but for every {RESTS_FOR_BONUS} rests you have one more at your next heartbeat, "
        f"{MAX_BONUS} at most."
    ),
    BudgetKind.TICKS: "None come back before they are all used; what you do not use is kept until then.",
}
# Keywords of a cluster and characters of a memory that are shown.
SHOWN_KEYWORDS = 8
MEMORY_LENGTH = 1_200
# The least intensity of a feeling that is named, and of a feeling named strong; 0 to 1.
FAINT = 0.1
STRONG = 0.6


def timing(situation: Situation) -> str:
    now = situation.environment.now.astimezone(UTC)
    return f"## Now\n{now:%A}, {format_time(now)} UTC. You are {situation.name}; this is your heartbeat {situation.heartbeat_number}."


def environment(environment: Environment, data: Data) -> str:
    if environment.user_waiting:
        user = "A user is waiting for you."
    elif environment.hours_since_user is None:
        user = "No user is waiting; none has ever been in touch."
    else:
        user = f"No user is waiting; the last contact was {format_hours(environment.hours_since_user)} ago."
    if environment.hours_since_reach_out is not None:
        user += f" You last wrote to your user {format_hours(environment.hours_since_reach_out)} ago."
    if environment.published_today:
        times = "once" if environment.published_today == 1 else f"{environment.published_today} times"
        user += f" In public you wrote {times} in the last 24 hours."
    presence = " Somebody is there." if environment.user_present and not environment.user_waiting else ""
    text = f"## Environment\n{user}{presence} Percepts waiting: {bounded(environment.pending_percepts, PERCEPTS_COUNTED)}."
    if not environment.other_agents:
        return text
    names = data.block([", ".join(line(name) for name in environment.other_agents)])
    return f"{text}\nOther agents that you can write to:\n{names}"


def notices(notices: Sequence[Notice], data: Data) -> str:
    return data.section("## Noticed about yourself", (f"- {line(notice.text)}" for notice in notices))


def last_heartbeat(heartbeat: LastHeartbeat | None, recent: Sequence[MemoryView], data: Data) -> str:
    """Render the last heartbeat; its narrative is left out where `recent` shows it."""
    if heartbeat is None:
        return "## Last heartbeat\nThis is your first."
    heading = f"## Last heartbeat ({heartbeat.number}, {heartbeat.mode.replace('_', ' ')})"
    outcomes = [f"- {line(outcome, OUTCOME_LENGTH)}" for outcome in heartbeat.outcomes]
    if any(memory.content == heartbeat.narrative for memory in recent):
        heading = f"{heading}\n{NARRATED_ABOVE}"
        return data.section(heading, outcomes, otherwise=heading)
    return data.section(heading, [line(heartbeat.narrative, OUTCOME_LENGTH), *outcomes])


def percepts(percepts: Sequence[PerceptView], pending: int, data: Data) -> str:
    if not percepts:
        return "## What reached you\nNothing."
    shown = percepts[-SHOWN_PERCEPTS:]
    left = max(pending, len(percepts)) - len(shown)
    body = data.section("## What reached you", (entry for percept in shown for entry in _percept(percept)))
    return body + (
        f"\nWaiting for your next heartbeat: {bounded(left, PERCEPTS_COUNTED, of=pending)}."
        if left > 0
        else ""
    )


def _percept(percept: PerceptView) -> Iterator[str]:
    sender = f" from {line(percept.peer)}" if percept.peer else ""
    yield f"[{percept.id}] {format_time(percept.at)}, {percept.kind}{sender}: {line(percept.content, _PERCEPT_SHOWN)}"
    if percept.answers:
        yield f"    answers what you wrote: {line(percept.answers)}"
    if percept.detail:
        parts = (f"{name}: {_value(value)}" for name, value in percept.detail.items())
        yield f"    with it: {line('; '.join(parts), DETAIL_LENGTH)}"


def _value(value: Any) -> str:
    return line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), VALUE_LENGTH)


def energy(situation: Situation) -> str:
    amount = f"## Energy\n{situation.energy:g} of at most {situation.max_energy:g}"
    if situation.energy_unit != BudgetKind.ENERGY:
        return f"{amount} {situation.energy_unit}. {SPENDING[BudgetKind(situation.energy_unit)]}"
    return (
        f"{amount}. {situation.regeneration:g} come back at each heartbeat; what you do not spend is kept, up to"
        f" {situation.max_energy:g}."
    )


def directive(situation: Situation) -> str:
    mode = situation.mode
    foremost = situation.foremost_goal
    unplanned = (
        mode is Mode.GOAL_PURSUIT
        and foremost is not None
        and not foremost.blocked_by
        and foremost.id not in situation.waiting_goals
        and all(intent.goal_id != foremost.id for intent in situation.intents)
    )
    return f"## This heartbeat: {mode.replace('_', ' ')}\n{UNPLANNED if unplanned else DIRECTIVES[mode]}"


def memories(title: str, memories: Sequence[MemoryView], data: Data) -> str:
    entries = (entry for memory in memories for entry in _memory(memory))
    return data.section(f"## {title}", entries, otherwise=f"## {title}\nNone.")


def _memory(memory: MemoryView) -> Iterator[str]:
    yield (
        f"[{memory.id}] {format_time(memory.at)}, {memory.type}"
        + (f", from {line(memory.role)}" if memory.role else "")
        + (f", summary of the episode {memory.episode}" if memory.episode else "")
        + f": {line(memory.content, MEMORY_LENGTH)}"
    )
    for detail in memory.details:
        yield f"    {line(detail, MEMORY_LENGTH)}"


def clusters(clusters: Sequence[ClusterView], data: Data) -> str:
    """Render the clusters that have keywords."""
    entries = (_cluster(cluster) for cluster in clusters if cluster.name != NO_KEYWORDS)
    return data.section("## Activated clusters", entries, otherwise="## Activated clusters\nNone.")


def _cluster(cluster: ClusterView) -> str:
    related = [name for name in cluster.related if name != NO_KEYWORDS]
    # A name by rule consists of the first keywords.
    named = cluster.name.split(", ")
    keywords = [word for word in cluster.keywords[:SHOWN_KEYWORDS] if word not in named]
    return (
        line(cluster.name)
        + (f": {line(', '.join(keywords))}" if keywords else "")
        + f" ({_feeling(cluster)})"
        + (f"; related clusters: {line('; '.join(related))}" if related else "")
    )


def buffer_items(items: Sequence[BufferItemView], data: Data) -> str:
    entries = (
        format_time(item.at)
        + (f", from {line(item.role)}" if item.role else "")
        + f": {line(item.content, MEMORY_LENGTH)}"
        for item in items
    )
    return data.section("## Heard lately, not yet remembered", entries)


def working_memory(memory: WorkingMemory, data: Data, *, with_goals: bool = False) -> str:
    """Render the working memory; `with_goals` for a prompt that has no section of goals."""
    text = memory.to_prompt_text(with_goals=with_goals)
    body = data.block([text]) if text else "Nothing yet."
    return f"## On your mind (engagement {memory.engagement:.1f} of 1)\n{body}"


def _feeling(cluster: ClusterView) -> str:
    """Return the emotional signature in words; a faint one is neutral."""
    if cluster.emotional_intensity < FAINT or abs(cluster.emotional_valence) < FAINT:
        return "feels neutral"
    how = "strongly " if cluster.emotional_intensity >= STRONG else ""
    return f"feels {how}{'good' if cluster.emotional_valence > 0 else 'bad'}"
