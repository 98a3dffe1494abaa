"""A chart of bars, one for each hour or day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Width of a bar with its gap, and height of the chart, in units of the drawing.
BAR_WIDTH, CHART_HEIGHT = 20.0, 100.0
#: The least height of a bar whose value is above zero.
_MIN_HEIGHT = 1.5


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar, with its place in the drawing."""

    value: float
    title: str
    x: float
    y: float
    height: float


def draw_bars(values: Sequence[tuple[float, str]]) -> list[Bar]:
    """Return the bars of (value, title), scaled so that the highest has the chart's height."""
    most = max((value for value, _ in values), default=0.0) or 1.0
    bars = []
    for index, (value, title) in enumerate(values):
        height = max(_MIN_HEIGHT, value / most * CHART_HEIGHT) if value > 0 else 0.0
        bars.append(
            Bar(
                value=value,
                title=title,
                x=round(index * BAR_WIDTH, 1),
                y=round(CHART_HEIGHT - height, 1),
                height=round(height, 1),
            )
        )
    return bars
