"""Draw the neighbors of a memory or of another node of the graph: a closer one is drawn nearer, with a thicker line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from arbor.memory.neighborhood import HIGHEST_WEIGHT
from arbor.quotations import clip

WIDTH = 760
ROW_HEIGHT = 32
MARGIN = 18
#: Distances of the closest and the farthest neighbor from the middle.
NEAREST, FARTHEST = 70, 140
#: Characters of a neighbor's text that fit beside it.
LABEL_LENGTH = 36
MIN_HEIGHT = 150


@dataclass(frozen=True, kw_only=True)
class Neighbor:
    """A neighbor to draw; its weight is from 0 to HIGHEST_WEIGHT."""

    id: UUID
    page: str
    text: str
    type: str
    weight: float
    #: Relations of the graph between the two, in words; empty for none.
    relation: str = ""


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A neighbor as drawn."""

    page: str
    label: str
    title: str
    type: str
    x: int
    y: int
    label_x: int
    anchor: str
    line: str
    thickness: float
    related: bool


@dataclass(frozen=True, kw_only=True)
class DrawnNeighborhood:
    """A drawn neighborhood."""

    width: int
    height: int
    x: int
    y: int
    dots: tuple[Dot, ...]


def draw_neighborhood(neighbors: Sequence[Neighbor]) -> DrawnNeighborhood | None:
    """Draw neighbors, the heaviest first, around their node; None without neighbors."""
    if not neighbors:
        return None
    sides = neighbors[0::2], neighbors[1::2]
    height = max(2 * MARGIN + len(sides[0]) * ROW_HEIGHT, MIN_HEIGHT)
    middle = height // 2
    dots = [
        _dot(neighbor, side, middle + offset, middle)
        for side, several in zip((1, -1), sides, strict=True)
        for neighbor, offset in zip(several, _offsets(len(several)), strict=True)
    ]
    return DrawnNeighborhood(width=WIDTH, height=height, x=WIDTH // 2, y=middle, dots=tuple(dots))


def _offsets(count: int) -> list[int]:
    """Return the vertical offsets of rows from the middle, the nearest first."""
    rows = [round((row - (count - 1) / 2) * ROW_HEIGHT) for row in range(count)]
    return sorted(rows, key=lambda offset: (abs(offset), offset))


def _dot(neighbor: Neighbor, side: int, y: int, middle: int) -> Dot:
    share = min(max(neighbor.weight / HIGHEST_WEIGHT, 0.0), 1.0)
    x = WIDTH // 2 + side * round(FARTHEST - share * (FARTHEST - NEAREST))
    bend = WIDTH // 2 + side * NEAREST // 2
    line = " ".join(neighbor.text.split())
    title = f"{line[:300]}\nweight {neighbor.weight:.2f} of {HIGHEST_WEIGHT:g}"
    return Dot(
        page=neighbor.page,
        label=clip(line, LABEL_LENGTH),
        title=f"{title}, {neighbor.relation}" if neighbor.relation else title,
        type=neighbor.type,
        x=x,
        y=y,
        label_x=x + side * 12,
        anchor="start" if side > 0 else "end",
        line=f"M{WIDTH // 2} {middle}C{bend} {middle} {bend} {y} {x} {y}",
        thickness=round(1 + 2.6 * share, 1),
        related=bool(neighbor.relation),
    )
