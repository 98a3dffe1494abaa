"""The stored form of a heartbeat between legs."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
import pytest

from arbor.authority.requests import ActionRequest, Nonce, SignedRequests
from arbor.embedding.models import EmbeddingModel
from arbor.errors import CheckpointInvalid
from arbor.goals.plans import LinkKind
from arbor.heartbeat.checkpoint import checkpoint_json, read_checkpoint
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.dialogue import VoiceView
from arbor.heartbeat.guards import ItemBoundaryMatch
from arbor.heartbeat.inputs import BudgetTerms, Moment, Routing, Selfhood
from arbor.heartbeat.pacing import ActiveHours, NextHeartbeat, SchedulePolicy
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import GoalChange, GoalChangeKind, RoundTripRecord
from arbor.heartbeat.situation import MemoryView
from arbor.heartbeat.state import (
    Focus,
    HeartbeatState,
    Inquiry,
    MoodShift,
    PromptParts,
    StateChanges,
    ToolCall,
)
from arbor.heartbeat.state_merge import FoundState
from arbor.heartbeat.views import MatchedBoundary
from arbor.memory.values import MemoryType
from arbor.pipeline.engine import Checkpoint
from arbor.selves.boundaries import BoundaryResponse
from tests.unit.heartbeat.builders import NOW, full_situation
from tests.unit.heartbeat.state_builders import (
    CALL,
    HEARTBEAT,
    HOUR,
    action_record_of,
    decision_of,
    heartbeat_of,
    moment_of,
    opening_of,
)

MODEL = EmbeddingModel(name="wordllama", dimension=256)
REQUEST = ActionRequest(
    resource="arbor://actions/execute/recall",
    agent="agent_1",
    at=NOW,
    body_hash="00",
    nonce=Nonce(heartbeat_id=HEARTBEAT, round_trip=1, index=0),
)
#: A value of each stored field that is not its default.
FULL: dict[str, Any] = {
    "signed": SignedRequests(requests=(REQUEST,), key_number=1, signature="ab"),
    "trigger": "message",
    "mark": "mark",
    "shift": -0.03,
    "selfhood": Selfhood(
        drives={"states": {}},
        mood={"valence": 0.1},
        learned={"recall": [4, 3]},
        tone="warm",
        boundaries=[{"name": "x", "enabled": False}],
        contact=NOW,
    ),
    "found": FoundState(
        energy=9.5, ticks_left=3, mood={"valence": 0.1}, stale_heartbeats=2, last_heartbeat_at=NOW
    ),
    "schedule": SchedulePolicy(
        interval=HOUR,
        adaptive=False,
        hours=ActiveHours(start=time(7), end=time(21, 30), zone=ZoneInfo("Europe/Berlin")),
    ),
    "embedding_model": MODEL,
    "allowed": ["recall"],
    "missing": {"inquire_deep": "no web"},
    "budget_terms": BudgetTerms(kind="ticks", allowance=32),
    "routing": Routing(own="a/b", tiers={"reflex": ["c/d"]}),
    "round_trips_allowed": 3,
    "idle": "idle",
    "mode": "reflection",
    "model": "a/b",
    "models_left": ["c/d"],
    "tier": "standard",
    "energy_start": 12.5,
    "round_trip": 2,
    "asked_tokens": 100,
    "conversation_tokens": 50,
    "call_id": CALL,
    "reply_text": "{}",
    "answered": CALL,
    "follow_up": "Go on.",
    "failure": "x",
    "unreadable": "y",
    "invalid_replies": 1,
    "goes_on": True,
    "reply": Reply(concerns=["fog"], item_paths={"concerns": ["concerns[1]"]}),
    "earlier_reply": Reply(concerns=["wind"]),
    "boundary_matches": [
        ItemBoundaryMatch(
            path="memory_notes[0]",
            value="{}",
            boundary_match=MatchedBoundary(
                boundary="no_harm", response=BoundaryResponse.REFUSE, description="", why="it says hurt"
            ),
            reason="no",
        )
    ],
    "decisions": [decision_of("recall", query="ferries")],
    "vectors": {"ferries": [0.25, -0.5]},
    "recalled": [
        MemoryView(id=str(UUID(int=9)), type=MemoryType.SEMANTIC, content="Ines keeps it.", role="Bo", at=NOW)
    ],
    "served": ["1"],
    "counted": ["1"],
    "rests": 1,
    "nops": 2,
    "voices": 2,
    "deliberated": 1,
    "hard": ["giving up the goal 1"],
    "views": [VoiceView(voice="skeptic", view="Too soon.", advice="leave")],
    "work": [Inquiry(place=0, question="q", queries=["a"], depth="deep", step="answer", call_id=CALL)],
    "tool_calls": [
        ToolCall(place=1, action="mcp.a.b", tool_id=CALL, fingerprint="f", arguments={"deep": [{"x": None}]})
    ],
    "present": RoundTripRecord(
        action_records=[action_record_of("recall", verdict=DecisionVerdict.TOO_SOON, cost=1)],
        goal_changes=[GoalChange(kind=GoalChangeKind.PLANNED, title="x", change="y")],
        dropped=[Dropped(path="a", value="b", reason="c")],
        repairs=["d"],
        reasoning="e",
    ),
    "earlier": RoundTripRecord(reasoning="before"),
    "round_trips": 2,
    "energy_end": 9.0,
    "narrative": "I rested.",
    "emotional_valence": 0.25,
    "arousal": 0.5,
    "memory_id": UUID(int=7),
    "state": StateChanges(energy=9.0, mood={"valence": 0.2}, notices=[], last_reach_out_at=NOW),
    "moved": MoodShift(valence=0.1, arousal=0.0),
    "next": NextHeartbeat(due_at=NOW + timedelta(hours=1), trigger="drive"),
    "percepts_received": True,
    "signal_positions": {"Ben": {str(UUID(int=60)): str(UUID(int=61))}},
}
#: Set for each leg, committed with the leg, or stored in a separate column.
STORED_ELSEWHERE = {"moment", "situation", "opening", "focus", "prompt", "effects", "character"}


def round_trip(heartbeat: HeartbeatState) -> Checkpoint[HeartbeatState]:
    """Return the checkpoint of the heartbeat, written and read again."""
    checkpoint = Checkpoint(cursor="think", state=heartbeat, visits={"think": 1}, waiting=True, steps=7)
    return read_checkpoint(
        checkpoint_json(checkpoint), situation=heartbeat.situation, moment_of=lambda _: moment_of()
    )


def test_every_field_of_a_heartbeat_is_stored_or_set_anew() -> None:
    identity = {"tenant_id", "agent_id", "heartbeat_id"}
    assert {field.name for field in fields(HeartbeatState)} == set(FULL) | STORED_ELSEWHERE | identity
    defaults = heartbeat_of()
    unset = [name for name, value in FULL.items() if value == getattr(defaults, name)]
    assert unset == []


def test_a_heartbeat_survives_the_round_trip() -> None:
    heartbeat = heartbeat_of(situation=full_situation(), **FULL)
    read = round_trip(heartbeat)
    assert (read.cursor, read.visits, read.waiting, read.steps) == ("think", {"think": 1}, True, 7)
    assert read.state == heartbeat
    assert round_trip(read.state).state == heartbeat


def test_renamed_fields_are_stored_under_their_former_keys() -> None:
    heartbeat = heartbeat_of(situation=full_situation(), **FULL)
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat)))
    assert [record["decision"]["action"] for record in written["heartbeat"]["present"]["deeds"]] == ["recall"]
    assert {"rhythm", "said_tokens", "crossings", "heard"} <= set(written["heartbeat"])


def test_dropped_paths_of_older_checkpoints_are_ignored() -> None:
    heartbeat = heartbeat_of(**FULL)
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat)))
    written["heartbeat"]["untaken"] = ["memory_notes[0]"]
    del written["heartbeat"]["reply"]["item_paths"]
    read = read_checkpoint(
        orjson.dumps(written), situation=heartbeat.situation, moment_of=lambda _: moment_of()
    )
    reply = read.state.reply_or_empty
    assert reply.paths_of("concerns", reply.concerns) == ["concerns[0]"]


def test_boundary_matches_of_older_checkpoints_are_read() -> None:
    match = MatchedBoundary(boundary="no_harm", response=BoundaryResponse.FLAG, why="it says hurt")
    refused = decision_of("recall", query="ferries").model_copy(update={"boundary_matches": [match]})
    heartbeat = heartbeat_of(**{**FULL, "decisions": [refused]})
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat)))
    for item in written["heartbeat"]["crossings"]:
        item["crossed"] = item.pop("boundary_match")
    (decision,) = written["heartbeat"]["decisions"]
    decision["crossed"] = decision.pop("boundary_matches")
    read = read_checkpoint(
        orjson.dumps(written), situation=heartbeat.situation, moment_of=lambda _: moment_of()
    )
    assert read.state == heartbeat


def test_round_trips_of_older_checkpoints_are_read() -> None:
    record = replace(action_record_of("recall", cost=1), round_trip=2)
    heartbeat = heartbeat_of(**{**FULL, "present": RoundTripRecord(action_records=[record])})
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat)))
    stored = written["heartbeat"]
    for part, name, former in (
        (stored, "round_trip", "turn"),
        (stored, "round_trips", "turns"),
        (stored, "round_trips_allowed", "turns_allowed"),
        (stored["present"]["deeds"][0], "round_trip", "turn"),
        (stored["signed"]["requests"][0]["nonce"], "round_trip", "turn"),
    ):
        part[former] = part.pop(name)
    read = read_checkpoint(
        orjson.dumps(written), situation=heartbeat.situation, moment_of=lambda _: moment_of()
    )
    assert read.state == heartbeat
    assert read.state.action_records[0].round_trip == 2


def test_counts_of_heartbeats_in_older_checkpoints_are_read() -> None:
    state = StateChanges(stale_heartbeats=3, idle_heartbeats=1)
    heartbeat = heartbeat_of(**{**FULL, "state": state})
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat)))
    stored = written["beat"] = written.pop("heartbeat")
    for part, name, former in (
        ("state", "stale_heartbeats", "stale_beats"),
        ("state", "idle_heartbeats", "idle_beats"),
        ("found", "stale_heartbeats", "stale_beats"),
        ("found", "last_heartbeat_at", "last_beat_at"),
    ):
        stored[part][former] = stored[part].pop(name)
    read = read_checkpoint(
        orjson.dumps(written), situation=heartbeat.situation, moment_of=lambda _: moment_of()
    )
    assert read.state == heartbeat


def test_a_checkpoint_omits_values_stored_elsewhere() -> None:
    heartbeat = heartbeat_of(
        situation=full_situation(),
        opening=opening_of(),
        focus=Focus(text="ferries", vector=[1.0]),
        prompt=PromptParts(system="a", user="b", sections=()),
        character="You are Mira.",
    ).with_effects(goal_links=[("goal", LinkKind.ORIGIN)])
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat)))
    assert not STORED_ELSEWHERE & set(written["heartbeat"])
    read = round_trip(heartbeat).state
    assert (read.opening, read.focus, read.prompt, read.character) == (None, None, None, "")
    # The effects of a leg are committed with it, and must not be repeated.
    assert read.effects == heartbeat_of().effects


def test_a_field_at_its_default_is_not_stored() -> None:
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat_of())))
    assert set(written["heartbeat"]) == {
        "tenant_id",
        "agent_id",
        "heartbeat_id",
        "trigger",
        "selfhood",
        "rhythm",
        "allowed",
        "energy_start",
        "model",
    }


@pytest.mark.parametrize("model", [None, MODEL])
def test_the_moment_of_a_leg_uses_the_stored_embedding_model(model: EmbeddingModel | None) -> None:
    models: list[EmbeddingModel | None] = []

    def moment(stored_model: EmbeddingModel | None) -> Moment:
        models.append(stored_model)
        return moment_of(embeds_here=False)

    heartbeat = heartbeat_of(embedding_model=model)
    read = read_checkpoint(
        checkpoint_json(Checkpoint(cursor="think", state=heartbeat)),
        situation=heartbeat.situation,
        moment_of=moment,
    )
    assert models == [model]
    assert read.state.moment == moment_of(embeds_here=False)


def test_an_incomplete_checkpoint_is_refused() -> None:
    written = orjson.loads(checkpoint_json(Checkpoint(cursor="think", state=heartbeat_of())))
    del written["cursor"]
    with pytest.raises(CheckpointInvalid, match="needs cursor"):
        read_checkpoint(orjson.dumps(written), situation=full_situation(), moment_of=lambda _: moment_of())


def test_a_heartbeat_state_is_immutable() -> None:
    heartbeat = heartbeat_of()
    with pytest.raises(AttributeError):
        heartbeat.round_trip = 1  # type: ignore[misc]
    assert replace(heartbeat, round_trip=1) != heartbeat
