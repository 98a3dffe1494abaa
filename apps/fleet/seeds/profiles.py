"""Read and write the profile of an agent: name, character, genome, pipeline, model, interval."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from apps.agents.models import Agent, HeartbeatSchedule
from apps.agents.services.profile import valid_name
from apps.fleet.seeds.sections import Values
from arbor.agents.character import Character
from arbor.agents.genome import AgentGenome
from arbor.agents.template import MAX_INTERVAL_S
from arbor.errors import AlreadyExists, SeedInvalid

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
    try:
        Character.model_validate(values["character"])
        if values["genome"] is not None:
            AgentGenome.model_validate(values["genome"])
    except ValidationError as error:
        raise SeedInvalid(f"the character of the seed cannot be read: {error.errors()[0]['msg']}") from error
    checked: dict[str, Any] = {column: values[column] for column in PROFILE_COLUMNS}
    checked["name"] = valid_name(str(checked["name"]))
    return checked


def interval_of(values: Values) -> float | None:
    """Return the seconds between heartbeats in a profile of a seed, if it has any. Raises SeedInvalid."""
    interval = values.get("interval_s")
    if interval is None:
        return None
    if not (isinstance(interval, int | float) and 1 <= interval <= MAX_INTERVAL_S):
        raise SeedInvalid(f"the interval of the seed must be 1 to {MAX_INTERVAL_S} seconds, got {interval!r}")
    return float(interval)


def apply_profile(agent: Agent, values: Values) -> None:
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
