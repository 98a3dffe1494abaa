"""The narrative of a heartbeat: the sentences that it is remembered by, and their emotional valence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from arbor.heartbeat.focus import foremost_percept
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.situation import Mode, Situation
from arbor.heartbeat.steps.inner_state import events_of
from arbor.quotations import closed, quoted, shorten
from arbor.selves.emotions import total_valence

NARRATIVE_LENGTH = 4_000
THOUGHT_LENGTH = 600
SUMMARY_LENGTH = 300

_OPENINGS: Mapping[Mode, str] = {
    Mode.CONVERSATION: "Somebody was waiting for me.",
    Mode.CONSOLIDATION: "I took time to tend my memory.",
    Mode.PLAN_EXECUTION: "I had goals but no plan.",
    Mode.GOAL_PURSUIT: "I worked on my goals.",
    Mode.REFLECTION: "Nothing pressed, so I reflected.",
}


_CHANGES: Mapping[GoalChangeKind, str] = {
    GoalChangeKind.PROGRESSED: "went on",
    GoalChangeKind.CREATED: "is new",
    GoalChangeKind.MOVED: "moved",
    GoalChangeKind.BLOCKED: "is held up",
    GoalChangeKind.PLANNED: "has a plan",
    GoalChangeKind.COMPLETED: "is done",
    GoalChangeKind.ABANDONED: "is given up",
    GoalChangeKind.REFUSED: "did not change as I wanted",
}


#: Phrases for items that a boundary refused, by the key of the reply.
_REFUSED_PHRASES: Mapping[str, str] = {
    "memory_notes": "note something",
    "goal_updates": "say how a goal goes",
    "new_goals": "take up a goal",
    "decompositions": "plan steps",
    "identity_insights": "say what I see in myself",
}


def narrate(
    situation: Situation,
    reply: Reply,
    results: Sequence[ActionResult],
    changes: Sequence[GoalChange],
    *,
    refused: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the narrative, deterministic, at most 4,000 characters; `refused` are (path, reason) of refused items."""
    sentences = [f"Heartbeat {situation.beat_number}. {_OPENINGS[situation.mode]}"]
    if percept := foremost_percept(situation.percepts):
        sentences.append(f"I heard: {quoted(_shorten(percept.content))}.")
    if reply.thinking:
        sentences.append(f"I thought: {quoted(shorten(' '.join(reply.thinking.split()), THOUGHT_LENGTH))}")
    sentences.extend(_action_sentences(results))
    sentences.extend(_goal_sentences(changes))
    sentences.extend(
        f"I could not {_REFUSED_PHRASES[path.partition('[')[0]]}: {_shorten(why)}." for path, why in refused
    )
    sentences.extend(f"It worries me: {_shorten(concern)}." for concern in reply.concerns)
    spent = sum(result.cost for result in results)
    sentences.append(f"I spent {spent} {situation.energy_unit} and have {situation.energy - spent:g} left.")
    return shorten(" ".join(sentences), NARRATIVE_LENGTH)


def valence(reply: Reply, results: Sequence[ActionResult], changes: Sequence[GoalChange]) -> float:
    """Return the emotional valence, -1 to 1: the clipped sum of the events."""
    return total_valence(events_of(reply, results, changes))


def _action_sentences(results: Sequence[ActionResult]) -> Iterator[str]:
    done = [result for result in results if result.outcome in (ActionOutcome.SUCCESS, ActionOutcome.PARTIAL)]
    failed = [result for result in results if result not in done]
    if not done:
        yield "I did nothing."
    for result in done:
        yield f"I did {result.action.replace('_', ' ')}: {_shorten(result.summary)}."
    for result in failed:
        word = "could not" if result.outcome is ActionOutcome.BLOCKED else "tried and failed to"
        yield f"I {word} {result.action.replace('_', ' ')}: {_shorten(result.summary)}."


def _goal_sentences(changes: Sequence[GoalChange]) -> Iterator[str]:
    for change in changes:
        about = _shorten(change.change)
        closed = change.by_rule and change.kind in (GoalChangeKind.COMPLETED, GoalChangeKind.ABANDONED)
        happened = "came to rest by itself" if closed else _CHANGES[change.kind]
        yield f"My goal {quoted(_shorten(change.title))} {happened}{f': {about}' if about else ''}."


def _shorten(text: str) -> str:
    return closed(shorten(" ".join(text.split()).rstrip("."), SUMMARY_LENGTH))
