"""Choose the aspects, beliefs and preferences that a prompt shows, for heartbeats and conversations alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arbor.heartbeat.views import AspectView, BeliefView, PreferenceView
from arbor.selves.salience import SelfPart, choose_salient
from arbor.selves.values import (
    ASPECTS_FIRM,
    ASPECTS_SHOWN,
    BELIEFS_FIRM,
    BELIEFS_SHOWN,
    PREFERENCES_SHOWN,
    QUALITIES,
)

#: The columns that `choose_self` reads of each part: those of its view, and those that it is ranked by.
ASPECT_COLUMNS = ("id", "kind", "content", "strength", "status", "stability", "updated_at")
BELIEF_COLUMNS = ("id", "category", "statement", "confidence", "status", "stability", "updated_at", "filters")
PREFERENCE_COLUMNS = ("key", "value", "updated_at")

type _Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SelfRows:
    """The parts of one agent's self: the columns above by name, the most stable first."""

    aspects: Iterable[_Row]
    beliefs: Iterable[_Row]
    preferences: Iterable[_Row]


def choose_self(rows: SelfRows, *, about: str, now: datetime) -> dict[str, Any]:
    """Return the views `aspects`, `beliefs` and `preferences` that suit a text best, by name.

    Traits, values and capabilities are left out: the system prompt has them.
    """
    aspects = [
        _part(row, row["content"], stability=row["stability"])
        for row in rows.aspects
        if row["kind"] not in QUALITIES
    ]
    beliefs = [
        _part(row, row["statement"], stability=(row["stability"] + row["confidence"]) / 2)
        for row in rows.beliefs
    ]
    preferences = [_part(row, f"{row['key']} {row['value']}") for row in rows.preferences]
    return {
        "aspects": [
            AspectView.model_validate({**row, "id": str(row["id"])})
            for row in choose_salient(
                aspects, about=about, now=now, limit=ASPECTS_SHOWN, firmest=ASPECTS_FIRM
            )
        ],
        "beliefs": [
            BeliefView.model_validate({**row, "id": str(row["id"])})
            for row in choose_salient(
                beliefs, about=about, now=now, limit=BELIEFS_SHOWN, firmest=BELIEFS_FIRM
            )
        ],
        "preferences": [
            PreferenceView.model_validate(row)
            for row in choose_salient(preferences, about=about, now=now, limit=PREFERENCES_SHOWN)
        ],
    }


def _part(row: _Row, text: str, *, stability: float = 0.0) -> SelfPart[_Row]:
    changed = row["updated_at"]
    return SelfPart(
        row=row,
        text=text,
        stability=stability,
        changed_at=changed if isinstance(changed, datetime) else datetime.fromisoformat(changed),
    )
