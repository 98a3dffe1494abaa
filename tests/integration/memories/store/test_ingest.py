"""Conversations ingested as memories: streamed, once, with bad lines listed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.services.recall.recaller import recall
from apps.memories.services.store import ingest as ingesting
from apps.memories.services.store.ingest import IngestResult, ingest
from apps.tenants.scope import tenant_transaction
from arbor.errors import ConversationInvalid, NotFound
from arbor.ids import uuid7
from arbor.memory.conversations.conversation import ConversationFormat
from arbor.memory.recall.recall_request import RecallRequest
from tests.integration.memories.conftest import at_once, memories_of, term_counts, true_counts
from tests.support.embedders import RemoteEmbedder

PLAIN = """\
[2024-05-01 09:00] Nora: I planted the quince by the south wall.
[2024-05-01 09:01] Ilja: The one from your aunt?
[2024-05-01 09:02] Nora: Yes, it came by post in a boot.
this line is nobody's
[2024-05-04 18:30] Ilja: Frost tonight. Cover the quince!
[2024-05-04 18:31] Nora:
[2024-05-04 18:32] Nora: Done. It wears my old coat now.
"""


def ingest_file(agent: Agent, path: Path, **options: Any) -> IngestResult:
    return ingest(tenant_id=agent.tenant_id, agent_id=agent.id, path=path, actor="cli:tests", **options)


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """Return a file with a talk of five turns in two sessions, and two bad lines."""
    path = tmp_path / "quince.txt"
    path.write_text(PLAIN, encoding="utf-8")
    return path


def write_long_talk(path: Path, turns: int) -> Path:
    path.write_text(
        "\n".join(f"Nora: Row {number} has {number * 7 % 31} quinces." for number in range(turns)),
        encoding="utf-8",
    )
    return path


def test_each_turn_becomes_an_episodic_memory(mind: Agent, talk: Path) -> None:
    result = ingest_file(mind, talk)
    assert (result.format, result.stored, result.duplicates, result.sessions) == (
        ConversationFormat.PLAIN,
        5,
        0,
        2,
    )
    first, *_, last = memories_of(mind)
    assert (first.content, first.role, first.type) == (
        "I planted the quince by the south wall.",
        "Nora",
        "episodic",
    )
    assert (first.source, first.session, first.position) == ("ingest:quince.txt", "quince/1", 0)
    assert first.occurred_at == datetime(2024, 5, 1, 9, tzinfo=UTC)
    assert (last.session, last.retention, last.expires_at) == ("quince/2", "lasting", None)
    # The word "Done." raises the importance.
    assert (first.importance, last.importance) == (0.5, 0.6)
    assert all(memory.embedding is not None for memory in memories_of(mind))


def test_an_ingested_turn_can_be_recalled(mind: Agent, talk: Path) -> None:
    ingest_file(mind, talk)
    recalled = recall(
        tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text="What came by post to Nora?")
    )
    assert recalled[0].content == "Yes, it came by post in a boot."


def test_bad_lines_are_listed_by_number_and_stop_nothing(mind: Agent, talk: Path) -> None:
    result = ingest_file(mind, talk)
    assert result.bad == 2
    assert {line.number: line.reason for line in result.bad_lines} == {
        4: 'expected `Speaker: text`, got "this line is nobody\'s"',
        6: "a memory needs a text, got an empty text",
    }


def test_reading_a_file_again_stores_nothing(mind: Agent, talk: Path) -> None:
    ingest_file(mind, talk)
    before = memories_of(mind)
    again = ingest_file(mind, talk)
    assert (again.stored, again.duplicates, again.bad) == (0, 5, 2)
    assert memories_of(mind) == before
    assert term_counts(mind) == true_counts(mind)


def test_a_corrected_line_is_the_only_new_one(mind: Agent, talk: Path) -> None:
    ingest_file(mind, talk)
    corrected = PLAIN.replace("this line is nobody's", "[2024-05-01 09:03] Ilja: this line is mine")
    talk.write_text(corrected, encoding="utf-8")
    result = ingest_file(mind, talk)
    assert (result.stored, result.duplicates, result.bad) == (1, 5, 1)


def test_an_interrupted_ingest_continues_where_it_stopped(
    mind: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_long_talk(tmp_path / "rows.txt", 95)
    monkeypatch.setattr(ingesting, "BATCH", 20)

    def stop_at(line: int, total: int) -> None:
        assert total == 95
        if line >= 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest_file(mind, path, progress=stop_at)
    assert len(memories_of(mind)) == 60
    result = ingest_file(mind, path)
    assert (result.stored, result.duplicates) == (35, 60)
    assert term_counts(mind) == true_counts(mind)


def test_progress_is_reported_for_each_batch_up_to_the_end(
    mind: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "BATCH", 10)
    reported: list[tuple[int, int]] = []
    ingest_file(
        mind,
        write_long_talk(tmp_path / "rows.txt", 25),
        progress=lambda line, total: reported.append((line, total)),
    )
    assert reported == [(10, 25), (20, 25), (25, 25)]


def test_long_turns_make_small_batches(mind: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "_BATCH_CHARACTERS", 5_000)
    path = tmp_path / "long.txt"
    path.write_text("\n".join(f"Nora: {number} {'mulch ' * 400}" for number in range(6)), encoding="utf-8")
    reached: list[int] = []
    assert ingest_file(mind, path, progress=lambda line, _: reached.append(line)).stored == 6
    assert reached == [3, 6]


def test_a_file_ingested_concurrently_is_stored_once(mind: Agent, tmp_path: Path) -> None:
    path = write_long_talk(tmp_path / "rows.txt", 120)
    results = at_once(lambda _: ingest_file(mind, path), writers=3)
    assert sum(result.stored for result in results) == 120
    assert len(memories_of(mind)) == 120
    assert term_counts(mind) == true_counts(mind)


def test_messages_of_a_chat_keep_their_roles(mind: Agent, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    lines = [
        {"role": "user", "content": "Where is pier 3?", "timestamp": "2024-05-01T10:00:00Z"},
        {"role": "assistant", "content": "Behind the fish hall.", "timestamp": "2024-05-01T10:00:04Z"},
        {"role": "user", "content": ["no text"]},
        {"role": "ha\ud83d", "content": "Half a pair."},
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    result = ingest_file(mind, path)
    assert (result.format, result.stored, result.bad) == (ConversationFormat.MESSAGES, 2, 2)
    assert [memory.role for memory in memories_of(mind)] == ["user", "assistant"]


def test_a_dialog_of_a_set_is_chosen_by_its_name(mind: Agent, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    dialogs = [
        {
            "sample_id": name,
            "conversation": {
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Nora", "dia_id": "D1:1", "text": f"This is {name}."},
                    {"speaker": "Nora", "dia_id": "D1:\0", "text": "A name that cannot be kept."},
                ],
            },
        }
        for name in ("one", "two")
    ]
    path.write_text(json.dumps(dialogs), encoding="utf-8")
    with pytest.raises(ConversationInvalid, match="contains 2 dialogs; name one"):
        ingest_file(mind, path)
    result = ingest_file(mind, path, sample="two")
    assert (result.stored, result.bad) == (1, 1)
    assert result.bad_lines[0].reason.startswith("detail must not contain a NUL character")
    (memory,) = memories_of(mind)
    assert (memory.content, memory.detail) == ("This is two.", {"source_id": "D1:1"})


def test_a_named_format_is_not_guessed(mind: Agent, talk: Path) -> None:
    result = ingest_file(mind, talk, form=ConversationFormat.MESSAGES)
    assert (result.stored, result.bad) == (0, 7)


def test_the_first_bad_lines_are_listed_and_all_are_counted(
    mind: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "MAX_BAD_LINES", 3)
    path = tmp_path / "noise.txt"
    path.write_text("Nora: Hello.\n" + "noise\n" * 10, encoding="utf-8")
    result = ingest_file(mind, path)
    assert (result.stored, result.bad, len(result.bad_lines)) == (1, 10, 3)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"no conversation at all"])
def test_a_file_that_is_no_conversation_is_refused(mind: Agent, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(content)
    with pytest.raises(ConversationInvalid, match=r"file\.bin"):
        ingest_file(mind, path)
    assert memories_of(mind) == []


def test_a_file_that_is_not_there_is_refused(mind: Agent, tmp_path: Path) -> None:
    with pytest.raises(ConversationInvalid, match="No such file"):
        ingest_file(mind, tmp_path / "nowhere.txt")


def test_an_agent_of_another_tenant_is_not_found(mind: Agent, foreign_mind: Agent, talk: Path) -> None:
    with pytest.raises(NotFound):
        ingest(tenant_id=mind.tenant_id, agent_id=foreign_mind.id, path=talk, actor="cli:tests")
    with pytest.raises(NotFound):
        ingest(tenant_id=mind.tenant_id, agent_id=uuid7(), path=talk, actor="cli:tests")


def test_without_an_embedder_the_turns_are_stored_all_the_same(
    mind: Agent, talk: Path, remote: RemoteEmbedder
) -> None:
    remote.away = True
    assert ingest_file(mind, talk).stored == 5
    assert all(memory.embedding is None for memory in memories_of(mind))


def test_an_ingest_is_audited(mind: Agent, talk: Path) -> None:
    ingest_file(mind, talk)
    with tenant_transaction(mind.tenant_id):
        event = AuditEvent.objects.get(action=AuditAction.OPERATOR_ACT)
    assert (event.actor, event.agent_id) == ("cli:tests", mind.id)
    assert event.message == "read quince.txt into the memory of Vega"
    assert event.detail == {"stored": 5, "duplicates": 0, "bad": 2}
