"""The parts of a prompt that change: one short text for each side of the situation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from arbor.goals.values import GoalState
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.situation import (
    AspectView,
    BeliefView,
    Environment,
    GoalView,
    HeldView,
    IntentView,
    LastBeat,
    MemoryView,
    PerceptView,
    Situation,
    ThemeView,
    WorkingMemory,
)
from arbor.selves.values import Standing

# How much of each is shown; what is left out is counted in the text. Goals and percepts: the origin of seed 000.
SHOWN_QUEUED = 5
SHOWN_PERCEPTS = 5
SHOWN_THOUGHTS = 5
SHOWN_KEYWORDS = 8
MEMORY_LENGTH = 1_200
#: The longest message that reaches an agent; it is shown whole. A document is a matter for `arbor ingest`.
MESSAGE_LENGTH = 8_000
PERCEPT_LENGTH = MESSAGE_LENGTH
LINE_LENGTH = 400

# How strong a feeling must be to be named, and to be called strong; of 1.
FAINT = 0.1
STRONG = 0.6

DIRECTIVES: Mapping[Mode, str] = MappingProxyType(
    {
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
)


class Section(NamedTuple):
    """A named part of the prompt."""

    name: str
    text: str


def render(situation: Situation, nonce: str) -> list[Section]:
    """Render each side of the situation, in the order in which it is read."""
    data = _Data(nonce)
    environment = situation.environment
    return [
        Section("timing", _timing(situation)),
        Section("environment", _environment(environment)),
        Section("energy", f"## Energy\n{situation.energy:g} of at most {situation.max_energy:g}."),
        Section(
            "directive",
            f"## This heartbeat: {situation.mode.replace('_', ' ')}\n{DIRECTIVES[situation.mode]}",
        ),
        Section("identity", _identity(situation.aspects, data)),
        Section("beliefs", _beliefs(situation.beliefs, data)),
        Section("goals", _goals(situation, data)),
        Section("intents", _intents(situation.pending_intents, data)),
        Section("recent", _memories("Recent experience", situation.recent, data)),
        Section("relevant", _memories("Memories that may matter now", situation.relevant, data)),
        Section("themes", _themes(situation.themes, data)),
        Section("held", _held(situation.held, data)),
        Section("working_memory", _working_memory(situation.working_memory, data)),
        Section("last_beat", _last_beat(situation.last_beat, data)),
        Section("percepts", _percepts(situation.percepts, environment.pending_percepts, data)),
    ]


class _Data:
    """Wraps what others said, so that it can only be read as data."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce

    def block(self, lines: Iterable[str]) -> str:
        """Return the lines in a block; the mark itself is taken out of them."""
        text = "\n".join(lines).replace(self._nonce, "")
        return f"<data-{self._nonce}>\n{text}\n</data-{self._nonce}>"


def _line(text: str, longest: int = LINE_LENGTH) -> str:
    """Return a text for one entry: its further lines indented, so that they cannot pass for entries; cut if long."""
    text = "\n    ".join(text.strip().splitlines())
    return text if len(text) <= longest else f"{text[:longest]}… (cut; {len(text)} characters in all)"


def _when(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _timing(situation: Situation) -> str:
    now = situation.environment.now.astimezone(UTC)
    return f"## Now\n{now:%A}, {now:%Y-%m-%d %H:%M} UTC. You are {situation.name}; this is your heartbeat {situation.beat_number}."


def _environment(environment: Environment) -> str:
    if environment.user_waiting:
        user = "A user is waiting for you."
    elif environment.hours_since_user is None:
        user = "No user is waiting; none has ever been in touch."
    else:
        user = f"No user is waiting; the last contact was {environment.hours_since_user:.1f} hours ago."
    return f"## Environment\n{user} Percepts waiting: {environment.pending_percepts}."


def _identity(aspects: Sequence[AspectView], data: _Data) -> str:
    if not aspects:
        return ""
    return "## Who you take yourself to be\n" + data.block(
        f"[{aspect.id}] {aspect.kind.replace('_', ' ')}{_doubt(aspect.status)}: {_line(aspect.content)}"
        for aspect in aspects
    )


def _beliefs(beliefs: Sequence[BeliefView], data: _Data) -> str:
    if not beliefs:
        return ""
    return "## What you believe\n" + data.block(
        f"[{belief.id}] {belief.category}, {belief.confidence:.0%} sure{_doubt(belief.status)}:"
        f" {_line(belief.statement)}"
        for belief in beliefs
    )


def _doubt(status: Standing) -> str:
    return ", in doubt" if status is Standing.QUESTIONED else ""


def _goals(situation: Situation, data: _Data) -> str:
    if not situation.goals:
        return "## Goals\nYou have no goals."
    queued = situation.goals_in(GoalState.QUEUED)
    lines: list[str] = []
    for goal in (*situation.active_goals, *queued[:SHOWN_QUEUED]):
        lines.extend(_goal(goal))
    left = len(queued) - SHOWN_QUEUED
    more = f"\nQueued besides these: {left}." if left > 0 else ""
    aside = len(situation.goals_in(GoalState.BACKBURNER))
    body = data.block(lines) if lines else "None is active or queued."
    return f"## Goals\n{body}{more}" + (f"\nOn the backburner: {aside}." if aside else "")


def _goal(goal: GoalView) -> Iterator[str]:
    about = [goal.state, goal.layer, f"from {goal.source}", f"{goal.fraction:.0%} done"]
    if goal.deadline is not None:
        about.append(f"due {_when(goal.deadline)}")
    about.extend(goal.flags)
    yield f"[{goal.id}] {_line(goal.title)} ({', '.join(about)})"
    if goal.description:
        yield f"    done when: {_line(goal.description)}"
    for note in goal.notes:
        yield f"    note: {_line(note)}"


def _intents(intents: Sequence[IntentView], data: _Data) -> str:
    if not intents:
        return "## Pending intents\nNone."
    return "## Pending intents\n" + data.block(
        f"[{intent.id}] {intent.action}: {_line(intent.description)} (for goal {intent.goal_id}"
        + (f"; failed attempts: {intent.attempts})" if intent.attempts else ")")
        for intent in intents
    )


def _memories(title: str, memories: Sequence[MemoryView], data: _Data) -> str:
    if not memories:
        return f"## {title}\nNone."
    return f"## {title}\n" + data.block(
        f"[{memory.id}] {_when(memory.at)}, {memory.type}"
        + (f", from {_line(memory.role)}" if memory.role else "")
        + f": {_line(memory.content, MEMORY_LENGTH)}"
        for memory in memories
    )


def _themes(themes: Sequence[ThemeView], data: _Data) -> str:
    if not themes:
        return "## Activated themes\nNone."
    return "## Activated themes\n" + data.block(
        _line(theme.name)
        + (f": {_line(', '.join(theme.keywords[:SHOWN_KEYWORDS]))}" if theme.keywords else "")
        + f" ({_feeling(theme)})"
        for theme in themes
    )


def _feeling(theme: ThemeView) -> str:
    """Say how a theme feels; what hardly stirs anything says so, whatever its sign."""
    if theme.emotional_intensity < FAINT or abs(theme.emotional_valence) < FAINT:
        return "feels neutral"
    how = "strongly " if theme.emotional_intensity >= STRONG else ""
    return f"feels {how}{'good' if theme.emotional_valence > 0 else 'bad'}"


def _held(held: Sequence[HeldView], data: _Data) -> str:
    if not held:
        return ""
    return "## Heard lately, not yet remembered\n" + data.block(
        _when(each.at)
        + (f", from {_line(each.role)}" if each.role else "")
        + f": {_line(each.content, MEMORY_LENGTH)}"
        for each in held
    )


def _working_memory(memory: WorkingMemory, data: _Data) -> str:
    lines = [
        f"thought at {_when(thought.at)}: {_line(thought.text)}"
        for thought in memory.thoughts[-SHOWN_THOUGHTS:]
    ]
    lines += [f"concern: {_line(concern)}" for concern in memory.concerns]
    lines += [f"curious about: {_line(question)}" for question in memory.curiosity]
    body = data.block(lines) if lines else "Nothing yet."
    return f"## On your mind (engagement {memory.engagement:.1f} of 1)\n{body}"


def _last_beat(beat: LastBeat | None, data: _Data) -> str:
    if beat is None:
        return "## Last heartbeat\nThis is your first."
    lines = [
        _line(beat.narrative, MEMORY_LENGTH),
        *(f"- {_line(outcome, MEMORY_LENGTH)}" for outcome in beat.outcomes),
    ]
    return f"## Last heartbeat ({beat.number}, {beat.mode.replace('_', ' ')})\n{data.block(lines)}"


def _percepts(percepts: Sequence[PerceptView], pending: int, data: _Data) -> str:
    if not percepts:
        return "## What reached you\nNothing."
    shown = percepts[-SHOWN_PERCEPTS:]
    left = max(pending, len(percepts)) - len(shown)
    body = data.block(
        f"[{percept.id}] {_when(percept.at)}, {percept.kind}: {_line(percept.content, PERCEPT_LENGTH)}"
        for percept in shown
    )
    return f"## What reached you\n{body}" + (f"\nEarlier ones not shown: {left}." if left > 0 else "")
