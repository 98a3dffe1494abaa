"""Feel: what the beat did to the agent's mood and drives, what it learned from acting, and which boundaries it kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.services.talked import who_talked
from apps.heartbeats.models import PerceptKind
from apps.selves.services.experiences import NewExperience, note_experiences
from apps.selves.services.peers import Meeting, note_meetings
from apps.selves.services.views import USER, contact_of
from apps.tenants.scope import current_tenant
from apps.tenants.statements import insert_rows
from arbor.clock import Clock
from arbor.heartbeat.decision import Verdict
from arbor.heartbeat.feeling import (
    causes,
    events_of,
    learned_after,
    met_something_new,
    satisfactions,
)
from arbor.heartbeat.guarding import about
from arbor.heartbeat.reply import PeerNote, Reply
from arbor.heartbeat.results import ActionResult, GoalChange
from arbor.heartbeat.situation import Situation
from arbor.ids import uuid7
from arbor.pipeline.engine import Context, NodeResult, Phase
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import after_beat, in_touch, read_drives
from arbor.selves.emotions import Event, Mood, baseline_of, change_of, read_mood
from arbor.selves.experiences import Outcome, lesson


class Feel:
    """Brings the agent's inner state up to date: one statement if it acted at a cost, more only for what came up."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Put drives, mood and what was learned into the state that the record writes; note experiences and boundaries."""
        now = self._clock.now()
        situation: Situation = context["situation"]
        reply: Reply = context["reply"]
        results: list[ActionResult] = context.get("all_results") or context["results"]
        changes = [GoalChange.model_validate(each) for each in context["record"].get("goal_changes", [])]
        entries: list[dict[str, Any]] = context["record"].get("actions", [])
        freely: list[dict[str, Any]] = context.get("crossings", [])
        before: Mapping[str, Any] = context.get("self") or {}
        met_new = met_something_new(situation, results, changes)
        drives = after_beat(
            in_touch(read_drives(before.get("drives"), now), contact_of(before)),
            now=now,
            satisfied=satisfactions(situation, results, changes),
            building=causes(situation, results, met_new=met_new),
        )
        events = [
            *events_of(reply, results, changes),
            *(Event.BOUNDARY for _ in _kept(situation, entries, freely)),
            *([Event.CONTACT] if any(each.kind in _PEOPLE for each in situation.percepts) else []),
        ]
        mood = _mood(before, now).moved(events)
        dropped = self._note(context, situation, reply, entries, before)
        state = {
            **context.get("state", {}),
            "drives": drives.model_dump(mode="json"),
            "mood": mood.model_dump(mode="json"),
            "learned": learned_after(before.get("learned") or {}, results),
            "stale_beats": 0 if met_new else situation.stale_beats + 1,
        }
        record = {**context["record"], "emotional_valence": mood.valence, "arousal": mood.arousal}
        if dropped:
            record["dropped"] = [*record.get("dropped", []), *dropped]
        # Somebody may have talked to the agent meanwhile: `record` needs to know what of the mood is this beat's doing.
        moved = {"seen": before.get("mood"), **change_of(events)._asdict()}
        return NodeResult(updates={"state": state, "record": record, "moved": moved})

    def _note(
        self,
        context: Context,
        situation: Situation,
        reply: Reply,
        entries: Sequence[Mapping[str, Any]],
        before: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        """Note what is kept in tables of its own; return what of the reply is not."""
        agent_id, heartbeat_id = UUID(context["agent_id"]), UUID(context["heartbeat_id"])
        note_experiences(
            agent_id=agent_id,
            heartbeat_id=heartbeat_id,
            tick=situation.beat_number,
            experiences=_experiences(entries, before.get("learned") or {}),
        )
        _note_boundaries(agent_id, heartbeat_id, situation, entries, context.get("crossings", []))
        meetings, told = _meetings(situation, reply.peer_notes, contact_of(before))
        refused = note_meetings(
            agent_id=agent_id,
            tick=situation.beat_number,
            now=self._clock.now(),
            meetings=meetings,
            told=told,
            talked_with=partial(who_talked, agent_id),
        )
        return [
            {
                "path": f"peer_notes[{reply.peer_notes.index(note)}]",
                "value": note.model_dump_json(),
                "reason": reason,
            }
            for note, reason in refused
        ]


_PEOPLE = (PerceptKind.USER_MESSAGE, PerceptKind.PEER_MESSAGE)


def _mood(before: Mapping[str, Any], now: datetime) -> Mood:
    return read_mood(before.get("mood"), baseline=baseline_of([before.get("tone") or ""]), now=now)


def _kept(
    situation: Situation, entries: Sequence[Mapping[str, Any]], freely: Sequence[Mapping[str, Any]]
) -> set[str]:
    """Return the boundaries that were pressed, from outside or from within; what is merely flagged presses nobody."""
    outside = {each.boundary for each in situation.crossed if each.response is not BoundaryResponse.FLAG}
    within = {
        each["boundary"]
        for entry in entries
        if entry.get("verdict") == Verdict.BOUNDARY
        for each in entry["crossed"]
    }
    return outside | within | {each["crossed"]["boundary"] for each in freely if each["reason"]}


def _experiences(
    entries: Sequence[Mapping[str, Any]], learned: Mapping[str, Sequence[int]]
) -> list[NewExperience]:
    """Return an experience of each action that was paid for."""
    found = []
    for entry in entries:
        if not entry.get("cost"):
            continue
        attempts, successes = learned.get(entry["action"], (0, 0))
        outcome = Outcome(entry["outcome"]) if entry["outcome"] in Outcome else Outcome.UNKNOWN
        what = about(entry["params"])
        taught = lesson(
            action=entry["action"],
            about=what,
            outcome=outcome,
            summary=entry["summary"],
            attempts=attempts,
            successes=successes,
        )
        found.append(NewExperience(action=entry["action"], about=what, outcome=outcome, lesson=taught))
    return found


def _note_boundaries(
    agent_id: UUID,
    heartbeat_id: UUID,
    situation: Situation,
    entries: Sequence[Mapping[str, Any]],
    freely: Sequence[Mapping[str, Any]],
) -> None:
    """Write each boundary that came up into the audit, with what was done about it. One statement, if any did."""
    asked = [
        (
            f"what reached it touches {each.boundary} ({each.response}): {each.why}",
            each.model_dump(mode="json"),
        )
        for each in situation.crossed
    ]
    done = [
        (
            f"{entry['action']} {'refused' if entry['verdict'] == Verdict.BOUNDARY else 'went on'} at"
            f" {each['boundary']} ({each['response']}): {each['why']}",
            {**each, "action": entry["action"], "verdict": entry["verdict"]},
        )
        for entry in entries
        for each in entry.get("crossed", [])
    ]
    insert_rows(
        [
            AuditEvent(
                id=uuid7(),
                tenant_id=current_tenant(),
                action=AuditAction.BOUNDARY,
                actor=f"agent:{situation.public_id}",
                agent_id=agent_id,
                message=message,
                detail={**detail, "heartbeat_id": str(heartbeat_id)},
            )
            for message, detail in (*asked, *done, *map(_said, freely))
        ]
    )


def _said(crossing: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what the audit says of an item of the reply at a boundary."""
    crossed = crossing["crossed"]
    became = "not taken" if crossing["reason"] else "taken"
    message = (
        f"{crossing['path']} {became} at {crossed['boundary']} ({crossed['response']}): {crossed['why']}"
    )
    return message, {**crossed, "path": crossing["path"], "reason": crossing["reason"]}


def _meetings(
    situation: Situation, notes: Sequence[PeerNote], contact: datetime | None
) -> tuple[list[Meeting], list[PeerNote]]:
    """Return who was met, those who wrote, and what the reply tells of others."""
    told: dict[str, PeerNote] = {}
    # Of several notes about one, the first counts; the others go along, to be refused.
    further = []
    for note in notes:
        if note.peer.strip() and told.setdefault(note.peer.strip().casefold(), note) is not note:
            further.append(note)
    wrote = {
        (percept.peer if percept.kind == PerceptKind.PEER_MESSAGE else USER): percept.peer_id
        for percept in situation.percepts
        if percept.kind in _PEOPLE
    }
    if contact is not None and USER in told:
        wrote.setdefault(USER, "")
    met = [
        Meeting(
            name=name,
            peer_id=peer_id,
            note=told.pop(name.casefold(), None) or told.pop(peer_id.casefold(), None),
        )
        for name, peer_id in wrote.items()
        if name
    ]
    return met, [*told.values(), *further]
