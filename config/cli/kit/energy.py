"""Energy policies on the command line."""

from __future__ import annotations

from typing import Any

from config.cli.kit.values import NONE


def energy_changes(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of energy from the given ones, and return them as changes of an `EnergyPolicy`."""
    changes = {
        field: None if value == NONE else value
        for field, option in (("regeneration", "regeneration"), ("maximum", "max_energy"))
        if (value := given.pop(option, None)) is not None
    }
    costs = dict(given.pop("costs", ()))
    return changes | ({"costs": costs} if costs else {})
