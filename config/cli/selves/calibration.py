"""Show how often an agent's accepted proposals proved right, and how far its self is from its birth."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape

from apps.selves.services.calibration import calibrations_of
from apps.selves.services.drift import measure_self_drift
from arbor.selves.drift import Drift
from config.cli.kit.columns import OutputColumn, listing, number, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.tenancy import ChosenAgent, in_agent_transaction

_CALIBRATION_COLUMNS = (
    OutputColumn("kind", "kind"),
    OutputColumn("right", "right"),
    OutputColumn("wrong", "wrong"),
    OutputColumn("rejected", "rejected"),
    OutputColumn(
        "threshold", "proposed from", cell=lambda value: "always" if value is None else number(value)
    ),
    OutputColumn("computed_at"),
)
_DRIFT_COLUMNS = (
    OutputColumn("name", "name"),
    OutputColumn("change", "change"),
    OutputColumn("at_birth", "at birth", cell=number),
    OutputColumn("now", "now", cell=number),
)


@in_agent_transaction
def list_calibrations(agent: ChosenAgent) -> Output:
    """List how often the accepted proposals of an agent proved right, by kind."""
    return listing(
        "calibrations",
        calibrations_of(agent.id),
        _CALIBRATION_COLUMNS,
        about={"agent": agent.name},
        empty=f"No proposal of {escape(agent.name)} has been decided and judged yet.",
    )


@in_agent_transaction
def show_drift(agent: ChosenAgent) -> Output:
    """Show how far an agent's values and traits are from those of its birth."""
    drift = measure_self_drift(agent.id)
    value = {
        "agent": agent.name,
        "drift": drift.share,
        "values": _as_json(drift.values),
        "traits": _as_json(drift.traits),
    }
    head = f"The self of {escape(agent.name)} is {drift.share:.0%} away from its birth."
    tables = [
        table_of(found.parts, _DRIFT_COLUMNS, title=f"{name}: {found.share:.0%}")
        for name, found in (("values", drift.values), ("traits", drift.traits))
        if found.parts
    ]
    return Output(value, text=Group(head, *tables))


def _as_json(drift: Drift) -> dict[str, Any]:
    return {
        "drift": drift.share,
        "parts": [
            {"name": part.name, "change": part.change.value, "at_birth": part.at_birth, "now": part.now}
            for part in drift.parts
        ],
    }
