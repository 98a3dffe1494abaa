"""Draw a pipeline, with the outcomes and durations of the nodes that a run has visited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from arbor.pipeline.dot import ReadGraph, read_dot
from arbor.pipeline.values import PipelineEdge, PipelineNode, PipelineNodeKind

#: The most boxes in a row.
COLUMNS = 8
BOX_WIDTH, BOX_HEIGHT = 122, 50
GAP_X, GAP_LANE, GAP_ROW = 22, 18, 46
MARGIN = 14
#: Characters of a label that fit into a line of a box.
LINE_LENGTH = 17


@dataclass(frozen=True, kw_only=True)
class NodeVisits:
    """The visits of a node: the outcome that is shown, the total time, and their number."""

    outcome: str
    milliseconds: float
    visits: int = 1
    #: The time of waiting for a model, as text.
    waited: str = ""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A node as drawn."""

    name: str
    lines: tuple[str, ...]
    x: int
    y: int
    round: bool
    #: The outcome that is shown; `none`: the run did not pass the node.
    outcome: str
    note: str
    title: str
    branch: bool = False

    @property
    def middle(self) -> int:
        """Return the horizontal middle of the box."""
        return self.x + BOX_WIDTH // 2


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """An edge as drawn: an SVG path."""

    path: str
    passed: bool
    title: str


class Place(NamedTuple):
    """The place of a node: its row, its column, and its lane within the row."""

    row: int
    column: int
    lane: int


@dataclass(frozen=True, kw_only=True)
class DrawnPipeline:
    """A drawn pipeline."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    box_width: int = BOX_WIDTH
    box_height: int = BOX_HEIGHT


def draw_pipeline(
    text: str, *, visits: Mapping[str, NodeVisits], path: Sequence[str], ended: str
) -> DrawnPipeline | None:
    """Draw a pipeline's DOT text, the visits of its nodes and a path through it; None if the text cannot be parsed.

    `path` names the visited nodes in order; `ended` is the outcome of the exit that the run took, such as `success`; empty where it took none.
    """
    reading = _read(text)
    if reading.faults or not reading.nodes:
        return None
    passed = _passed_edges(reading, path, ended)
    places, lanes = _places(reading)
    tops = _row_tops(lanes)
    boxes = {
        name: _box(reading.nodes[name], place, tops[place.row], visits.get(name), passed)
        for name, place in places.items()
    }
    arrows = tuple(
        _arrow(edge, boxes, places, (edge.source, edge.target) in passed)
        for edge in reading.edges
        if edge.source in boxes and edge.target in boxes
    )
    columns = max(place.column for place in places.values()) + 1
    return DrawnPipeline(
        width=2 * MARGIN + columns * (BOX_WIDTH + GAP_X) - GAP_X,
        height=tops[-1] - GAP_ROW + MARGIN,
        boxes=tuple(boxes.values()),
        # Edges of the path are drawn last, on top of the others.
        arrows=tuple(sorted(arrows, key=lambda arrow: arrow.passed)),
    )


@lru_cache(maxsize=32)
def _read(text: str) -> ReadGraph:
    # Cached, because parsing takes some 5 ms for each node; callers must not change the graph.
    return read_dot(text)


def _passed_edges(reading: ReadGraph, path: Sequence[str], ended: str) -> set[tuple[str, str]]:
    """Return the edges of the path: between its steps, from the start, to the exit, and through branches."""
    if not path:
        return set()
    starts = [node.name for node in reading.nodes.values() if node.kind is PipelineNodeKind.START]
    exits = [
        node.name
        for node in reading.nodes.values()
        if node.kind is PipelineNodeKind.EXIT and node.exit_outcome == ended
    ]
    pairs: set[tuple[str, str]] = set()
    for before, after in pairwise(path):
        pairs |= _path_through_branches(reading, before, {after}) if before != after else set()
    for start in starts:
        pairs |= _path_through_branches(reading, start, {path[0]})
    return pairs | _path_through_branches(reading, path[-1], set(exits))


def _path_through_branches(reading: ReadGraph, source: str, targets: set[str]) -> set[tuple[str, str]]:
    """Return the edges of the shortest path through branches only, from a node to the nearest of the targets."""
    paths: list[list[str]] = [[source]]
    visited = {source}
    for path in paths:  # the list grows during the loop
        for target in _following(reading, path[-1]):
            if target in targets:
                return set(pairwise([*path, target]))
            node = reading.nodes.get(target)
            if node is not None and node.kind is PipelineNodeKind.BRANCH and target not in visited:
                visited.add(target)
                paths.append([*path, target])
    return set()


def _following(reading: ReadGraph, name: str) -> list[str]:
    return [edge.target for edge in reading.edges if edge.source == name]


def _places(reading: ReadGraph) -> tuple[dict[str, Place], list[int]]:
    """Return the row, column and lane of each node, and the number of lanes of each row."""
    following: dict[str, list[str]] = {}
    for edge in reading.edges:
        if edge.target in reading.nodes and edge.source in reading.nodes:
            following.setdefault(edge.source, []).append(edge.target)
    starts = [node.name for node in reading.nodes.values() if node.kind is PipelineNodeKind.START]
    ranks = ranks_of(following, starts or list(reading.nodes)[:1])
    filled: dict[int, int] = {}
    places: dict[str, Place] = {}
    # Nodes from which a successful exit can be reached get the first lane.
    order = sorted(ranks, key=lambda name: (ranks[name], _is_dead_end(reading, following, name)))
    for name in order:
        row, column = divmod(ranks[name], COLUMNS)
        lane = filled.get(ranks[name], 0)
        filled[ranks[name]] = lane + 1
        places[name] = Place(row, column, lane)
    rows = max(place.row for place in places.values()) + 1
    lanes = [
        max((place.lane + 1 for place in places.values() if place.row == row), default=1)
        for row in range(rows)
    ]
    return places, lanes


def _is_dead_end(reading: ReadGraph, following: Mapping[str, Sequence[str]], name: str) -> bool:
    """Return whether no successful exit can be reached from a node."""
    visited, waiting = {name}, [name]
    while waiting:
        node = reading.nodes.get(waiting.pop())
        if node is None:
            continue
        if node.kind is PipelineNodeKind.EXIT and node.exit_outcome == "success":
            return False
        new = [target for target in following.get(node.name, []) if target not in visited]
        visited.update(new)
        waiting.extend(new)
    return True


def _row_tops(lanes: Sequence[int]) -> list[int]:
    tops = [MARGIN + 14]
    for count in lanes:
        tops.append(tops[-1] + count * (BOX_HEIGHT + GAP_LANE) - GAP_LANE + GAP_ROW)
    return tops


def _box(
    node: PipelineNode, place: Place, top: int, visit: NodeVisits | None, passed: set[tuple[str, str]]
) -> Box:
    reached = any(node.name in pair for pair in passed)
    if visit is not None:
        outcome = visit.outcome
        times = f" ×{visit.visits}" if visit.visits > 1 else ""
        note = f"{visit.milliseconds:.1f} ms{times}"
        if visit.waited:
            note = f"{note} · {visit.waited}"
    elif reached and node.kind is not PipelineNodeKind.STEP:
        outcome, note = ("failure" if node.exit_outcome == "failure" else "success"), ""
    else:
        outcome, note = "none", ""
    return Box(
        name=node.name,
        lines=_wrapped(node.label or node.name),
        x=MARGIN + place.column * (BOX_WIDTH + GAP_X),
        y=top + place.lane * (BOX_HEIGHT + GAP_LANE),
        round=node.kind in (PipelineNodeKind.START, PipelineNodeKind.EXIT),
        outcome=outcome,
        note=note,
        branch=node.kind is PipelineNodeKind.BRANCH,
        title=f"{node.name}: {'not passed' if outcome == 'none' else outcome}",
    )


def _wrapped(label: str) -> tuple[str, ...]:
    lines = [""]
    for word in label.split():
        joined = f"{lines[-1]} {word}".strip()
        if len(joined) <= LINE_LENGTH or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1][: LINE_LENGTH - 1]}…"]
    return tuple(lines)


def _arrow(edge: PipelineEdge, boxes: Mapping[str, Box], places: Mapping[str, Place], passed: bool) -> Arrow:
    source, target = boxes[edge.source], boxes[edge.target]
    row, column, lane = places[edge.source]
    to_row, to_column, to_lane = places[edge.target]
    right, left = source.x + BOX_WIDTH, target.x - 3
    middle, to_middle = source.y + BOX_HEIGHT // 2, target.y + BOX_HEIGHT // 2
    if row == to_row and to_column == column + 1 and lane == to_lane:
        path = f"M{right} {middle}H{left}"
    elif row == to_row and to_column > column:
        bend = GAP_X // 2
        path = f"M{right} {middle}C{right + bend} {middle} {left - bend} {to_middle} {left} {to_middle}"
    elif row == to_row and to_column == column:
        path = f"M{source.middle} {source.y + BOX_HEIGHT}V{target.y - 3}"
    elif row == to_row:
        high = min(source.y, target.y) - 18
        path = f"M{source.middle} {source.y}C{source.middle} {high} {_entry(target)} {high} {_entry(target)} {target.y - 3}"
    elif to_row > row:
        side, between = right + GAP_X // 2, _row_top(target, to_lane) - GAP_ROW // 2
        # A lower lane is entered from the side, because from above the arrow would cross another box.
        end = (
            f"H{target.x - GAP_X // 2}V{to_middle}H{left}" if to_lane else f"H{target.middle}V{target.y - 3}"
        )
        path = f"M{right} {middle}H{side}V{between}{end}"
    else:
        low = target.y + BOX_HEIGHT
        between = _row_top(source, lane) - GAP_ROW // 2 + 6
        begin = f"{source.x} {middle}H{source.x - GAP_X // 2 - 4}" if lane else f"{source.middle} {source.y}"
        path = f"M{begin}V{between}H{target.middle}V{low + 3}"
    title = f"{edge.source} to {edge.target}"
    return Arrow(path=path, passed=passed, title=f"{title}: {edge.label}" if edge.label else title)


def _entry(box: Box) -> int:
    """Return the horizontal position of an arrow from above: beside the middle, so that two arrows do not overlap."""
    return box.middle + 12


def _row_top(box: Box, lane: int) -> int:
    """Return the top of the row of a box in that lane."""
    return box.y - lane * (BOX_HEIGHT + GAP_LANE)


def ranks_of(following: Mapping[str, Sequence[str]], starts: Sequence[str]) -> dict[str, int]:
    """Return the rank of each reachable node: its distance from the start on the longest path without back edges."""
    ahead: dict[str, list[str]] = {}
    order: list[str] = []
    for start in starts:
        _order(start, following, ahead, order)
    ranks: dict[str, int] = {}
    for name in reversed(order):
        ranks.setdefault(name, 0)
        for target in ahead[name]:
            ranks[target] = max(ranks.get(target, 0), ranks[name] + 1)
    return ranks


def _order(
    start: str, following: Mapping[str, Sequence[str]], ahead: dict[str, list[str]], order: list[str]
) -> None:
    """Append the nodes reachable from a start in postorder; `ahead` gets their edges except back edges."""
    if start in ahead:
        return
    ahead[start], open_nodes = [], {start}
    waiting = [(start, iter(following.get(start, ())))]
    while waiting:
        name, targets = waiting[-1]
        target = next(targets, None)
        if target is None:
            order.append(name)
            open_nodes.discard(name)
            waiting.pop()
        elif target not in open_nodes:
            ahead[name].append(target)
            if target not in ahead:
                ahead[target] = []
                open_nodes.add(target)
                waiting.append((target, iter(following.get(target, ()))))
