"""The energy of an agent's heartbeats: regeneration, maximum and prices of actions, as a policy may change them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, ValidationError

from arbor.errors import Invalid

# Seed 004, 2.2.
REGENERATION = 10.0
MAX_ENERGY = 20.0
#: The largest maximum that a policy may set.
ENERGY_CEILING = 1000
# Seed 004, 2.4: free under a budget of energy, whatever a policy says.
ALWAYS_FREE = frozenset({"complete_step", "observe", "review_goals", "remember", "rest"})


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyTerms:
    """The energy terms of an agent; `costs` has the prices that differ from the defaults."""

    regeneration: float = REGENERATION
    maximum: float = MAX_ENERGY
    costs: dict[str, int] = field(default_factory=dict)

    def describe(self) -> str:
        """Describe the terms: `10 come back at each heartbeat, 20 at most; recall costs 2`."""
        costs = "".join(f"; {action} costs {cost}" for action, cost in sorted(self.costs.items()))
        return f"{self.regeneration:g} come back at each heartbeat, {self.maximum:g} at most{costs}"


class EnergyPolicy(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The part of the terms that a template, a tenant or an agent sets; None: as inherited (seed 004, `heartbeat_config`)."""

    regeneration: Annotated[float, Field(strict=True, gt=0, le=ENERGY_CEILING)] | None = None
    maximum: Annotated[float, Field(strict=True, ge=1, le=ENERGY_CEILING)] | None = None
    costs: dict[str, Annotated[int, Field(strict=True, ge=0, le=ENERGY_CEILING)]] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the policy as JSON, without the fields that it inherits."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def changed(self, changes: Mapping[str, Any] | None) -> Self:
        """Return the policy with some fields changed; None removes a field, a cost, or all of it. Raises Invalid."""
        if changes is None:
            return type(self)()
        fields = {**self.to_json(), **changes}
        costs = changes.get("costs", {})
        if isinstance(costs, Mapping):
            fields["costs"] = {**self.costs, **costs}
        try:
            return type(self).model_validate(_without_none(fields))
        except ValidationError as error:
            raise Invalid("; ".join(_faults_of(error))) from error


def terms_of(*policies: EnergyPolicy) -> EnergyTerms:
    """Return the terms of policies, of which later ones take precedence."""
    given: dict[str, Any] = {}
    costs: dict[str, int] = {}
    for policy in policies:
        given |= policy.model_dump(exclude={"costs"}, exclude_none=True)
        costs |= policy.costs
    return EnergyTerms(**given, costs=costs)


def check_terms(terms: EnergyTerms, *, default_costs: Mapping[str, int]) -> None:
    """Raise Invalid unless the regeneration is at most the maximum, and only actions with a price have one, which can be paid."""
    most = terms.maximum
    if terms.regeneration > most:
        raise Invalid(
            f"the energy that comes back at a heartbeat is at most the maximum of {most:g}, got {terms.regeneration:g}"
        )
    priced = [name for name in default_costs if name not in ALWAYS_FREE]
    for name, cost in terms.costs.items():
        if name in ALWAYS_FREE:
            raise Invalid(f"{name} is always free; actions with a price are {', '.join(priced)}")
        if name not in priced:
            raise Invalid(f"there is no action {name!r}; actions with a price are {', '.join(priced)}")
        if cost > most:
            raise Invalid(f"the energy cost of {name} is 0 to the maximum of {most:g}, got {cost}")
    costs = {**default_costs, **terms.costs}
    if beyond := [f"{name} ({cost})" for name, cost in costs.items() if cost > most]:
        raise Invalid(
            f"with a maximum of {most:g} energy, {', '.join(beyond)} could never be paid: set a maximum of at least"
            f" {max(costs.values())}, or lower costs with it"
        )


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_none(value) if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if value is not None
    }


def _faults_of(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        name, *rest = map(str, fault["loc"])
        got = fault["input"]
        match name:
            case "regeneration":
                yield f"the energy that comes back at a heartbeat is above 0 and at most {ENERGY_CEILING}, got {got!r}"
            case "maximum":
                yield f"the maximum energy is 1 to {ENERGY_CEILING}, got {got!r}"
            case "costs" if rest:
                yield f"the energy cost of {rest[0]} is a whole number from 0 to {ENERGY_CEILING}, got {got!r}"
            case "costs":
                yield f"energy costs are numbers by action, as recall: 2, got {got!r}"
            case _:
                yield f"an energy policy has {', '.join(EnergyPolicy.model_fields)}, got {name!r}"
