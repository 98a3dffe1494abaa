"""Read and write the profile of an agent: name, character, genome, pipeline, model, interval."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from apps.agents.models import Agent, HeartbeatSchedule
from apps.agents.services.lookup import valid_name
from apps.fleet.seeds.checks import Values
from arbor.agents.character import Character
from arbor.agents.genome import AgentGenome
from arbor.agents.template import MAX_INTERVAL_S, TrustTier
from arbor.errors import AlreadyExists, Invalid, SeedInvalid
from arbor.heartbeat.steps import HANDLERS
from arbor.models.handles import Handle
from arbor.pipeline.graph import load_graph

#: The columns of an agent that a seed carries.
PROFILE_COLUMNS = (
    "name",
    "template_name",
    "template_version",
    "trust_tier",
    "character",
    "genome",
    "pipeline",
    "model",
    "published",
    "public_description",
)
#: The types of the columns that are no text.
_TYPES: dict[str, type | tuple[type, ...]] = {
    "character": dict,
    "genome": (dict, type(None)),
    "published": bool,
}


def profile_values(agent: Agent) -> Values:
    """Return the profile of an agent."""
    interval = (
        HeartbeatSchedule.objects.filter(agent_id=agent.id).values_list("interval_s", flat=True).first()
    )
    return {**{column: getattr(agent, column) for column in PROFILE_COLUMNS}, "interval_s": interval}


def checked_profile(values: Values) -> Values:
    """Return the columns of a profile of a seed. Raises SeedInvalid."""
    if missing := set(PROFILE_COLUMNS) - values.keys():
        raise SeedInvalid(f"the profile of the seed has no {', '.join(sorted(missing))}")
    checked: dict[str, Any] = {column: values[column] for column in PROFILE_COLUMNS}
    for column, value in checked.items():
        if not isinstance(value, _TYPES.get(column, str)):
            raise SeedInvalid(
                f"the profile of the seed has {column} {str(value)[:60]!r}, which cannot be read"
            )
    try:
        Character.model_validate(checked["character"])
        if checked["genome"] is not None:
            AgentGenome.model_validate(checked["genome"])
        checked["name"] = valid_name(checked["name"])
        checked["trust_tier"] = TrustTier(checked["trust_tier"])
        if checked["model"]:
            checked["model"] = str(Handle.parse_input(checked["model"]))
        if checked["pipeline"]:
            load_graph(checked["pipeline"], handlers=HANDLERS)
    except ValidationError as error:
        raise SeedInvalid(
            f"the character or genome of the seed cannot be read: {error.errors()[0]['msg']}"
        ) from error
    except (Invalid, ValueError) as error:
        raise SeedInvalid(f"the profile of the seed cannot be read: {error}") from error
    return checked


def interval_of(values: Values) -> float | None:
    """Return the seconds between heartbeats in a profile of a seed, if it has any. Raises SeedInvalid."""
    interval = values.get("interval_s")
    if interval is None:
        return None
    if not (isinstance(interval, int | float) and 1 <= interval <= MAX_INTERVAL_S):
        raise SeedInvalid(f"the interval of the seed must be 1 to {MAX_INTERVAL_S} seconds, got {interval!r}")
    return float(interval)


def apply_profile(agent: Agent, *, values: Values) -> None:
    """Write a profile of a seed to an agent, which is locked. Raises SeedInvalid, and AlreadyExists for its name."""
    checked = checked_profile(values)
    name_in_use = AlreadyExists(
        f"this tenant has another agent {checked['name']!r}, the name of the seed: skip the profile"
    )
    if Agent.objects.filter(name__iexact=checked["name"]).exclude(id=agent.id).exists():
        raise name_in_use
    for column, value in checked.items():
        setattr(agent, column, value)
    try:
        with transaction.atomic():
            agent.save(update_fields=list(checked))
    except IntegrityError as error:
        raise name_in_use from error
    if (interval := interval_of(values)) is not None:
        HeartbeatSchedule.objects.filter(agent_id=agent.id).update(interval_s=interval)
