"""Render a drawn pipeline as a standalone SVG file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from apps.console.pictures.pipeline import Arrow, Box, DrawnPipeline

_STYLE = """
rect { fill: #fff; stroke: #94a3b8; stroke-width: 1.2 }
.branch rect { stroke-dasharray: 4 3 }
.success rect { stroke: #16a34a; fill: #f0fdf4 } .partial rect, .retry rect { stroke: #d97706; fill: #fffbeb }
.failure rect { stroke: #dc2626; fill: #fef2f2 }
text { font: 11px system-ui, sans-serif; text-anchor: middle; fill: #0f172a }
path { fill: none; stroke: #cbd5e1; stroke-width: 1.2 } path.passed { stroke: #2563eb; stroke-width: 1.8 }
marker path { fill: #94a3b8; stroke: none } text.note { font-size: 9px; fill: #64748b }
"""


def svg_of(picture: DrawnPipeline, *, title: str) -> str:
    """Return the drawing as the text of an SVG file."""
    return "\n".join(_lines(picture, title)) + "\n"


def _lines(picture: DrawnPipeline, title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture.width}" height="{picture.height}"'
        f' viewBox="0 0 {picture.width} {picture.height}" role="img">'
    )
    yield f"<title>{escape(title)}</title>"
    yield f"<style>{_STYLE}</style>"
    yield (
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="4.5" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L6 3L0 6z"/></marker></defs>'
    )
    yield f'<rect width="{picture.width}" height="{picture.height}" style="fill:#fff;stroke:none"/>'
    for arrow in picture.arrows:
        yield _arrow(arrow)
    for box in picture.boxes:
        yield from _box(box, picture)
    yield "</svg>"


def _arrow(arrow: Arrow) -> str:
    passed = ' class="passed"' if arrow.passed else ""
    return (
        f'<path{passed} d="{arrow.path}" marker-end="url(#tip)"><title>{escape(arrow.title)}</title></path>'
    )


def _box(box: Box, picture: DrawnPipeline) -> Iterator[str]:
    middle = picture.box_width // 2
    lines = [line for line in box.lines if line]
    top = picture.box_height / 2 + 4 - 6.5 * (len(lines) - 1) - (5 if box.note else 0)
    kind = f"{box.outcome}{' branch' if box.branch else ''}"
    yield f'<g class="{escape(kind)}" transform="translate({box.x} {box.y})"><title>{escape(box.title)}</title>'
    yield f'<rect width="{picture.box_width}" height="{picture.box_height}" rx="{25 if box.round else 8}"/>'
    for place, line in enumerate(lines):
        yield f'<text x="{middle}" y="{top + 13 * place:g}">{escape(line)}</text>'
    if box.note:
        yield f'<text class="note" x="{middle}" y="{picture.box_height - 6}">{escape(box.note)}</text>'
    yield "</g>"
