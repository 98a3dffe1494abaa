"""The stored form of a heartbeat between two legs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
from pydantic import TypeAdapter

from arbor.heartbeat.beat import Beat, Moment
from arbor.heartbeat.situation import Situation
from arbor.pipeline.progress import Checkpoint

#: Set anew for each leg, written with it, or stored in a column of its own (what the agent saw).
_NOT_STORED = frozenset({"moment", "view", "opening", "focus", "prompt", "effects", "character"})
_BEAT: TypeAdapter[Beat] = TypeAdapter(Beat)


def checkpoint_json(checkpoint: Checkpoint[Beat]) -> bytes:
    """Return a checkpoint as JSON text; the situation of its beat is stored apart."""
    beat = _BEAT.dump_json(checkpoint.state, exclude=set(_NOT_STORED), exclude_defaults=True)
    return orjson.dumps({**checkpoint.position(), "beat": orjson.Fragment(beat)})


def read_checkpoint(stored: bytes | str, *, situation: Situation, moment: Moment) -> Checkpoint[Beat]:
    """Return the checkpoint of a stored heartbeat that goes on at this moment."""
    written: dict[str, Any] = orjson.loads(stored)
    beat = _BEAT.validate_python(written["beat"], strict=False)
    return Checkpoint.at(written, replace(beat, view=situation, moment=moment))
