"""The stored form of a heartbeat between two legs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypedDict, get_type_hints

import orjson
from pydantic import TypeAdapter

from arbor.embedding.models import EmbeddingModel
from arbor.errors import CheckpointInvalid
from arbor.heartbeat.inputs import Moment
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.pipeline.engine import Checkpoint

#: Fields of one leg, such as its time and its prompt, those committed with the leg, and those in a column of their own (the situation).
_NOT_STORED = frozenset({"moment", "situation", "opening", "focus", "prompt", "effects", "character"})

#: The key of the stored fields in checkpoints of older versions.
_FORMER_KEY = "beat"
#: The stored fields with their defaults; a field at its default is not written.
_DEFAULTS: Mapping[str, Any] = {
    field.name: field.default if field.default_factory is MISSING else field.default_factory()
    for field in fields(HeartbeatState)
    if field.name not in _NOT_STORED
}
_HINTS = {
    name: hint
    for name, hint in get_type_hints(HeartbeatState, include_extras=True).items()
    if name in _DEFAULTS
}
#: Typed as Any: the class is built at run time, and the type checker cannot know its keys.
_typed_dict: Any = TypedDict
_STORED: TypeAdapter[dict[str, Any]] = TypeAdapter(_typed_dict("_Stored", _HINTS, total=False))


def checkpoint_json(checkpoint: Checkpoint[HeartbeatState]) -> bytes:
    """Return a checkpoint as JSON text, without the situation, which is stored apart."""
    heartbeat = checkpoint.state
    known = {
        name: value for name, default in _DEFAULTS.items() if (value := getattr(heartbeat, name)) != default
    }
    return orjson.dumps(
        {**checkpoint.position(), "heartbeat": orjson.Fragment(_STORED.dump_json(known, by_alias=True))}
    )


def read_checkpoint(
    stored: bytes | str, *, situation: Situation, moment_of: Callable[[EmbeddingModel | None], Moment]
) -> Checkpoint[HeartbeatState]:
    """Return a stored checkpoint; raises CheckpointInvalid for one of an older version."""
    written: dict[str, Any] = orjson.loads(stored)
    stored_fields = written.get("heartbeat", written.get(_FORMER_KEY))
    if stored_fields is None:
        raise CheckpointInvalid("an older version of Arbor stored this heartbeat; it cannot go on")
    known = _STORED.validate_python(stored_fields)
    moment = moment_of(known.get("embedding_model"))
    return Checkpoint.at(written, HeartbeatState(**known, situation=situation, moment=moment))
