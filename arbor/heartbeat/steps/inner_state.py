"""Update mood, drives, experiences, boundary matches and peers after a heartbeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arbor.authority.reflexes import INQUIRIES
from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.goals.goal_rules import GoalRule
from arbor.goals.review import GoalFlag
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.effects import AuditNote
from arbor.heartbeat.guards import ItemBoundaryMatch, opening_text
from arbor.heartbeat.inputs import Selfhood
from arbor.heartbeat.needs import Meeting, Meetings
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import PeerNote, Reply
from arbor.heartbeat.results import (
    MEANINGS,
    ActionOutcome,
    ActionRecord,
    ActionResult,
    GoalChange,
    GoalChangeKind,
    is_effort,
)
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, WEBHOOK, Situation
from arbor.heartbeat.state import HeartbeatState, MoodShift
from arbor.heartbeat.views import GoalView, MatchedBoundary
from arbor.pipeline.engine import NodeResult, Steps
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import (
    CONTACT,
    GOAL_COMPLETED,
    SATISFACTION,
    Drive,
    after_heartbeat,
    read_drives,
    satisfy_by_contact,
)
from arbor.selves.emotions import Event, baseline_of, read_mood, time_since
from arbor.selves.experiences import ExperienceOutcome, NewExperience, lesson
from arbor.values import replace

#: The name of the peer that represents users.
USER = "user"
_PEOPLE = (USER_MESSAGE, PEER_MESSAGE)
#: Parameters of actions whose values are choices.
_CHOICES = frozenset({"state", "target", "verdict", "relation", "kind", "type"})
#: The `AuditAction` of a boundary match.
_BOUNDARY = "boundary"
#: Flags of goals that do not get on.
_LAGGING = frozenset(
    {GoalFlag.BLOCKED, GoalFlag.STALE, GoalFlag.OVERDUE, GoalFlag.DEAD_LETTERED, GoalFlag.REPLAN}
)
#: Changes of goals that went against the agent.
_SETBACKS = (GoalChangeKind.BLOCKED, GoalChangeKind.REFUSED)
#: Changes that close a goal.
_ENDED = (GoalChangeKind.COMPLETED, GoalChangeKind.ABANDONED)
#: Percepts with news from outside (`apps.agents.models.PerceptKind`).
NEWS = frozenset({USER_MESSAGE, PEER_MESSAGE, WEBHOOK, "environment"})
_OUTCOMES: Mapping[ActionOutcome, Event] = {
    ActionOutcome.SUCCESS: Event.SUCCESS,
    ActionOutcome.BLOCKED: Event.BLOCKED,
    ActionOutcome.FAILURE: Event.FAILURE,
}
_ACTION_EVENTS: Mapping[str, Event] = {
    "rest": Event.REST,
    REACH_OUT_USER: Event.REACH_OUT,
    REACH_OUT_AGENT: Event.REACH_OUT,
    REACH_OUT_PUBLIC: Event.REACH_OUT,
}


def feel(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Update drives, mood and learned counts; record experiences, boundary matches and meetings."""
    situation, reply, before = heartbeat.situation, heartbeat.reply_or_empty, heartbeat.selfhood
    whole = heartbeat.whole
    results, changes = whole.results, whole.goal_changes
    met_new = met_something_new(situation, results, changes)
    drives = after_heartbeat(
        satisfy_by_contact(read_drives(before.drives, heartbeat.now), before.contact),
        now=heartbeat.now,
        satisfied=satisfactions(situation, results, changes),
        building=causes(situation, results, changes, met_new=met_new),
    )
    events = [
        *events_of(reply, results, changes),
        *(
            Event.BOUNDARY
            for _ in _refusing_boundaries(situation, whole.action_records, heartbeat.boundary_matches)
        ),
        *([Event.CONTACT] if any(percept.kind in _PEOPLE for percept in situation.percepts) else []),
    ]
    calm = read_mood(before.mood, baseline=baseline_of([before.tone]), now=heartbeat.now)
    mood = calm.moved(events, after=time_since(before.mood, heartbeat.now))
    heartbeat = heartbeat.with_effects(
        experiences=_experiences(whole.action_records, before, situation.goals),
        audit=_boundary_notes(heartbeat, whole.action_records),
    )
    met, others = _meetings(situation, reply.peer_notes)
    if met or others:
        refused: list[tuple[PeerNote, str]] = yield Meetings(
            heartbeat_number=situation.heartbeat_number, met=met, others=others, contact=before.contact
        )
        if refused:
            # By identity: two notes may be equal.
            reasons = {id(note): reason for note, reason in refused}
            paths = reply.paths_of("peer_notes", reply.peer_notes)
            heartbeat = heartbeat.with_dropped(
                Dropped(path=path, value=note.model_dump_json(), reason=reasons[id(note)])
                for path, note in zip(paths, reply.peer_notes, strict=True)
                if id(note) in reasons
            )
    heartbeat = heartbeat.with_state(
        drives=drives.to_json(),
        mood=mood.model_dump(mode="json"),
        learned=learned_after(before.learned, results),
        stale_heartbeats=0
        if met_new or _has_explored(situation, changes)
        else situation.stale_heartbeats + 1,
    )
    # The commit merges this change with that of a concurrent conversation.
    heartbeat = replace(
        heartbeat,
        emotional_valence=mood.valence,
        arousal=mood.arousal,
        moved=MoodShift(valence=mood.valence - calm.valence, arousal=mood.arousal - calm.arousal),
    )
    return NodeResult(state=heartbeat)


def _refusing_boundaries(
    situation: Situation, actions: Sequence[ActionRecord], items: Sequence[ItemBoundaryMatch]
) -> set[str]:
    """Return the boundaries that refused something, from outside or within; flags do not count."""
    refused = [action.decision for action in actions if action.decision.verdict is DecisionVerdict.BOUNDARY]
    matches = [
        *situation.boundary_matches,
        *(match for decision in refused for match in decision.boundary_matches),
        *(item.boundary_match for item in items if item.reason),
    ]
    return {match.boundary for match in matches if match.response is not BoundaryResponse.FLAG}


def _experiences(
    actions: Sequence[ActionRecord], before: Selfhood, goals: Sequence[GoalView]
) -> list[NewExperience]:
    titles = {goal.id: goal.title for goal in goals}
    experiences = []
    for action in actions:
        result, about = action.result, _subject_of(action.decision.params, titles)
        if not is_effort(result):
            continue
        attempts, successes = before.learned.get(result.action, (0, 0))
        known = result.outcome in ExperienceOutcome
        outcome = ExperienceOutcome(result.outcome) if known else ExperienceOutcome.UNKNOWN
        learnt = lesson(
            action=result.action,
            about=about,
            outcome=outcome,
            summary=result.summary,
            attempts=attempts,
            successes=successes,
        )
        experiences.append(NewExperience(action=result.action, about=about, outcome=outcome, lesson=learnt))
    return experiences


def _subject_of(params: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Return what an action was about: the title of its goal, or its first text that is neither an id nor a choice."""
    if title := titles.get(str(params.get("goal_id", ""))):
        return title
    return opening_text({name: value for name, value in params.items() if name not in _CHOICES})


def _boundary_notes(heartbeat: HeartbeatState, actions: Sequence[ActionRecord]) -> list[AuditNote]:
    matches: list[tuple[str, MatchedBoundary, dict[str, Any]]] = [
        ("what reached it touches", match, {}) for match in heartbeat.situation.boundary_matches
    ]
    for action, verdict in ((record.decision, record.decision.verdict) for record in actions):
        what = f"{action.action} {'refused' if verdict is DecisionVerdict.BOUNDARY else 'went on'} at"
        detail = {"action": action.action, "verdict": verdict.value}
        matches += [(what, match, detail) for match in action.boundary_matches]
    matches += [
        (
            f"{item.path} {'not taken' if item.reason else 'taken'} at",
            item.boundary_match,
            {"path": item.path, "reason": item.reason},
        )
        for item in heartbeat.boundary_matches
    ]
    return [
        AuditNote(
            action=_BOUNDARY,
            message=f"{what} {match.boundary} ({match.response}): {match.why}",
            detail={
                **match.model_dump(mode="json"),
                **detail,
                "heartbeat_id": str(heartbeat.heartbeat_id),
            },
        )
        for what, match, detail in matches
    ]


def _meetings(situation: Situation, notes: Sequence[PeerNote]) -> tuple[list[Meeting], list[PeerNote]]:
    """Return the meetings with those who wrote, and the notes about others; people before agents of their name."""
    notes_by_peer: dict[str, PeerNote] = {}
    # Further notes about the same peer are passed on, to be refused.
    further = []
    for note in notes:
        if note.peer.strip() and notes_by_peer.setdefault(note.peer.strip().casefold(), note) is not note:
            further.append(note)
    senders = dict.fromkeys(
        (percept.peer_id, percept.peer) if percept.kind == PEER_MESSAGE else ("", USER)
        for percept in situation.percepts
        if percept.kind in _PEOPLE
    )
    met = [
        Meeting(
            name=name,
            peer_id=peer_id,
            note=notes_by_peer.pop(peer_id.casefold(), None) or notes_by_peer.pop(name.casefold(), None),
        )
        for peer_id, name in sorted(senders, key=lambda peer: bool(peer[0]))
        if name
    ]
    return met, [*notes_by_peer.values(), *further]


def events_of(reply: Reply, results: Sequence[ActionResult], changes: Sequence[GoalChange]) -> list[Event]:
    """Return the events that move the mood, in order; changes by rules do not count."""
    action_events = [
        (result.outcome is ActionOutcome.SUCCESS and _ACTION_EVENTS.get(result.action))
        or _OUTCOMES.get(result.outcome)
        for result in results
    ]
    change_events = [MEANINGS[change.kind].event for change in changes if not change.by_rule]
    return [
        *(event for event in (*action_events, *change_events) if event is not None),
        *(Event.CONCERN for _ in reply.concerns),
    ]


def satisfactions(
    situation: Situation, results: Sequence[ActionResult], changes: Sequence[GoalChange]
) -> list[tuple[Drive, float]]:
    """Return the satisfied drives and by how much; goals closed by rules do not count."""
    satisfied = [
        SATISFACTION[result.action]
        for result in results
        if result.outcome is ActionOutcome.SUCCESS and result.action in SATISFACTION
    ]
    satisfied += [
        GOAL_COMPLETED for change in changes if change.kind is GoalChangeKind.COMPLETED and not change.by_rule
    ]
    # Contact with users: `arbor.selves.drives.satisfy_by_contact`.
    satisfied += [CONTACT for percept in situation.percepts if percept.kind == PEER_MESSAGE]
    return satisfied


def causes(
    situation: Situation, results: Sequence[ActionResult], changes: Sequence[GoalChange], *, met_new: bool
) -> dict[Drive, bool]:
    """Return for each drive whether its cause lasts after the heartbeat (seed 004, "Drives")."""
    return {
        Drive.CURIOSITY: not met_new,
        Drive.COHERENCE: bool(situation.contradictions),
        # Effort failed, or an active goal lags.
        Drive.COMPETENCE: any(result.outcome is ActionOutcome.FAILURE for result in results)
        or any(change.kind in _SETBACKS and not change.by_rule for change in changes)
        or any(not _LAGGING.isdisjoint(goal.flags) for goal in situation.active_goals),
        # Silence lasts until contact, which satisfies the drive.
        Drive.CONNECTION: True,
        Drive.REST: any(is_effort(result) for result in results),
    }


def met_something_new(
    situation: Situation, results: Sequence[ActionResult], changes: Sequence[GoalChange]
) -> bool:
    """Return whether the heartbeat met news, a goal that no rule created, an action never tried before or the answer of an inquiry."""
    tried = {capability.action for capability in situation.capabilities}
    return (
        any(percept.kind in NEWS for percept in situation.percepts)
        or any(change.kind is GoalChangeKind.CREATED and not change.by_rule for change in changes)
        or any(is_effort(result) and result.action not in tried for result in results)
        or any(result.action in INQUIRIES and result.outcome is ActionOutcome.SUCCESS for result in results)
    )


def _has_explored(situation: Situation, changes: Sequence[GoalChange]) -> bool:
    """Return whether the goal of curiosity ended, so that the pressure of curiosity builds up anew."""
    exploring = {goal.id for goal in situation.goals if goal.rule == GoalRule.CURIOSITY}
    return any(change.kind in _ENDED and change.goal_id in exploring for change in changes)


def learned_after(
    learned: Mapping[str, Sequence[int]], results: Sequence[ActionResult]
) -> dict[str, list[int]]:
    """Return attempts and successes by action after this heartbeat; refusals and unknown outcomes are no attempts."""
    counted = {action: [*map(int, counts[:2])] for action, counts in learned.items()}
    for result in results:
        if result.outcome not in (ActionOutcome.BLOCKED, ActionOutcome.UNKNOWN):
            counts = counted.setdefault(result.action, [0, 0])
            counts[0] += 1
            counts[1] += result.outcome is ActionOutcome.SUCCESS
    return counted
