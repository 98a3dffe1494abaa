"""Signals coalesced by name and source."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arbor.knowledge.subscriptions import CoalescedSignals, ReadSignal, coalesce, subject_of

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def signal_at(minutes: int, name: str = "document.published", source: str = "", **data: Any) -> ReadSignal:
    return ReadSignal(name=name, source=source, at=NOON + timedelta(minutes=minutes), data=data)


def test_signals_of_one_name_and_source_are_one_entry() -> None:
    entries = coalesce(
        [
            signal_at(1, title="Tides"),
            signal_at(2, "memory.heartbeat", "Lyra", status="done"),
            signal_at(3, title="Lamps"),
            signal_at(4, title="Tides"),
            signal_at(5, "memory.heartbeat", "you", status="done"),
            signal_at(6, title="Ropes"),
            signal_at(7, title="Reef"),
        ]
    )
    assert entries[0] == CoalescedSignals(
        name="document.published",
        source="",
        count=5,
        at=NOON + timedelta(minutes=7),
        subjects=["Reef", "Ropes", "Tides"],
    )
    assert [(entry.name, entry.source, entry.count) for entry in entries[1:]] == [
        ("memory.heartbeat", "Lyra", 1),
        ("memory.heartbeat", "you", 1),
    ]


def test_the_source_that_waits_longest_comes_first() -> None:
    entries = coalesce(
        [
            signal_at(1, "memory.heartbeat", "Lyra"),
            signal_at(2, "memory.heartbeat", "Ben"),
            signal_at(3, "memory.goal_created", "Ben"),
            signal_at(4, "memory.goal_created", "Lyra"),
            signal_at(5, "memory.heartbeat", "Lyra"),
        ]
    )
    assert [(entry.source, entry.name) for entry in entries] == [
        ("Lyra", "memory.heartbeat"),
        ("Lyra", "memory.goal_created"),
        ("Ben", "memory.goal_created"),
        ("Ben", "memory.heartbeat"),
    ]


def test_an_empty_list_of_signals_gives_no_entries() -> None:
    assert coalesce([]) == []


@pytest.mark.parametrize(
    ("data", "subject"),
    [
        ({"document": "17", "title": "Tides"}, "Tides"),
        ({"run": "17", "workflow": "close the month", "status": "done"}, "close the month"),
        ({"status": 7, "count": 3}, ""),
        ({}, ""),
    ],
)
def test_a_signal_is_about_its_best_field(data: dict[str, Any], subject: str) -> None:
    assert subject_of(data) == subject
