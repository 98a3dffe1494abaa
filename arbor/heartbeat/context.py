"""What the nodes of a heartbeat hand to each other: values while it walks, JSON while it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from arbor.heartbeat.decision import Decision
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.results import ActionResult
from arbor.heartbeat.situation import Situation

#: What stands under these names is a value, or a list of them; under every other name stands JSON.
_VALUES: Mapping[str, type[BaseModel]] = MappingProxyType(
    {"situation": Situation, "reply": Reply, "earlier_reply": Reply}
)
_LISTS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {"decisions": Decision, "results": ActionResult, "all_results": ActionResult}
)


def dump_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context as a JSON object."""
    return {name: _dumped(value) for name, value in context.items()}


def revive_context(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context that `dump_context` wrote."""
    context = dict(stored)
    for name, kind in _VALUES.items():
        if context.get(name) is not None:
            context[name] = kind.model_validate(context[name])
    for name, kind in _LISTS.items():
        if context.get(name) is not None:
            context[name] = [kind.model_validate(each) for each in context[name]]
    return context


def _dumped(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {name: _dumped(each) for name, each in value.items()}
    if isinstance(value, list | tuple) and value and isinstance(value[0], BaseModel):
        return [each.model_dump(mode="json") for each in value]
    return value
