"""Convert the columns of `sight` into the situation's parts about the self."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from arbor.heartbeat.steps.inner_state import USER
from arbor.heartbeat.views import (
    CapabilityView,
    ContradictionView,
    DriveView,
    ExperienceView,
    MoodView,
    PeerView,
    PreferenceView,
    ProposalView,
)
from arbor.selves.drives import URGENT, Drive, in_touch, read_drives
from arbor.selves.emotions import baseline_of, read_mood
from arbor.selves.trust import trust


def view_self(seen: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return the situation's fields about the self by name, from the columns that `see` read."""
    drives = in_touch(read_drives(seen["drives"], now), seen["last_user_contact_at"])
    levels = {drive: drives.level(drive, now) for drive in Drive}
    mood = read_mood(seen["mood"], baseline=baseline_of([seen["tone"] or ""]), now=now)
    return {
        "drives": [
            DriveView(name=drive, level=level, urgent=level >= URGENT) for drive, level in levels.items()
        ],
        "mood": MoodView(valence=mood.valence, arousal=mood.arousal),
        "stale_beats": seen["stale_beats"],
        "capabilities": [
            CapabilityView(action=action, attempts=attempts, successes=successes)
            for action, (attempts, successes) in sorted((seen["learned"] or {}).items())
        ],
        "contradictions": [ContradictionView.model_validate(row) for row in seen["contradictions"]],
        "proposals": [ProposalView.model_validate(row) for row in seen["proposals"]],
        "preferences": [PreferenceView.model_validate(row) for row in seen["preferences"]],
        "experiences": [ExperienceView.model_validate(row) for row in seen["experiences"]],
        "peers": [_peer(row, seen) for row in seen["peers"]],
    }


def _peer(row: Mapping[str, Any], seen: Mapping[str, Any]) -> PeerView:
    heard = {percept["kind"] for percept in seen["percepts"]}
    return PeerView(
        name=row["name"],
        present=row["present"]
        or (row["peer_id"] is None and row["name"] == USER and "user_message" in heard),
        trust=trust(
            successes=row["successes"],
            interactions=row["interactions"],
            tick=seen["beats"] + 1,
            last_tick=row["last_tick"],
        ),
        competence=row["competence"],
        reliability=row["reliability"],
        interests=row["interests"],
        interactions=row["interactions"],
    )
