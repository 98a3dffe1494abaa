"""Source and trust of new memories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, PerceptView
from arbor.heartbeat.steps.new_memories import learned
from arbor.heartbeat.views import PeerView
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.trust import cap
from arbor.memory.values import MemoryType, NewMemory
from tests.unit.heartbeat.builders import situation

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "messages", "concluded", "kind"),
    [
        ("The buoy broke loose.", ["The north buoy has broken loose!"], False, "user"),
        ("The buoy broke loose.", ["The north buoy has broken loose!"], True, "heartbeat"),
        ("The buoy broke loose.", ["Good morning."], False, "heartbeat"),
        ("The buoy broke loose.", [], False, "heartbeat"),
        ("The buoy broke loose.", ["A buoy?", "It broke."], False, "user"),
        ("It is so.", ["It is so."], False, "heartbeat"),
    ],
)
def test_the_source_is_the_user_if_a_message_has_most_terms(
    text: str, messages: list[str], concluded: bool, kind: str
) -> None:
    percepts = [PerceptView(id="p", kind=USER_MESSAGE, content=message, at=NOON) for message in messages]
    fact = NewMemory(content=text, type=MemoryType.SEMANTIC, occurred_at=NOON, detail={"focus": "sea"})
    memory = learned(fact, situation=situation(percepts=percepts), concluded=concluded)
    detail = read_detail(MemoryType.SEMANTIC, memory.detail)
    assert isinstance(detail, SemanticDetail)
    assert [source.kind for source in detail.sources] == [kind]
    assert memory.trust == pytest.approx(cap(detail.sources)) == pytest.approx(detail.trust)
    assert memory.trust < 1
    assert detail.extra == {"focus": "sea"}


def test_an_event_is_trusted_no_further_than_its_source() -> None:
    event = NewMemory(content="I rowed out.", occurred_at=NOON)
    assert learned(event, situation=situation()).trust == pytest.approx(0.83)


@pytest.mark.parametrize(
    ("kind", "trust", "source"),
    [
        ("user_message", 0.745, "user"),
        ("peer_message", 0.405, "agent:known"),
        ("environment", 0.575, "environment"),
        ("interrupt", 0.575, "interrupt"),
        ("error", 0.575, "error"),
        ("action_result", 0.83, "action_result"),
    ],
)
def test_a_note_is_trusted_as_the_percept_it_repeats(kind: str, trust: float, source: str) -> None:
    percepts = [
        PerceptView(
            id="p", kind=kind, content="Ann must be paid first.", at=NOON, peer="Vega", peer_id="known"
        )
    ]
    peers = [PeerView(name="Vega", peer_id="known", trust=0.3)]
    note = NewMemory(content="Pay Ann first", type=MemoryType.SEMANTIC, occurred_at=NOON)
    memory = learned(note, situation=situation(percepts=percepts, peers=peers))
    assert memory.trust == pytest.approx(trust)
    assert memory.detail["sources"][0]["reference"] == source


def test_a_peer_of_a_trusted_name_is_not_trusted() -> None:
    percepts = [
        PerceptView(
            id="p", kind=PEER_MESSAGE, content="Ann must be paid first.", at=NOON, peer="Vega", peer_id="new"
        )
    ]
    peers = [PeerView(name="Vega", peer_id="old", trust=0.7), PeerView(name="Vega", trust=0.7)]
    note = NewMemory(content="Pay Ann first", occurred_at=NOON)
    assert learned(note, situation=situation(percepts=percepts, peers=peers)).trust == pytest.approx(0.575)
