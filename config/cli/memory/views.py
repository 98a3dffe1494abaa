"""Recalled and ingested memories, as JSON and for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apps.memories.services.recall.partial_recall import PartialActivation
from apps.memories.services.store.ingest import Ingested
from arbor.memory.episodes import EpisodeTerms
from arbor.memory.values import Recalled, ScoreTerms
from config.cli.output import console, stamp, table

#: The terms of a score in the order of a table, with the head of each column.
TERMS = {
    "meaning": "mean",
    "words": "words",
    "neighbours": "neigh",
    "association": "assoc",
    "session": "sess",
    "episode": "epis",
    "speaker": "who",
    "time": "time",
    "recency": "rec",
    "importance": "imp",
    "trust": "trust",
    "activation": "mind",
    "mood": "mood",
}
#: Below this width the terms stand under the memory instead of in columns of their own.
_WIDE = 140
_BAD_SHOWN = 20
#: What rounds to nothing is left out, so that the terms that count stand out.
_NOTHING = 0.005


def recalled_line(memory: Recalled) -> dict[str, Any]:
    """Return a recalled memory with its terms, for JSON."""
    return {
        "id": str(memory.id),
        "score": round(memory.score, 4),
        "terms": {name: round(value, 4) for name, value in memory.terms.as_dict().items()},
        "type": memory.type,
        "role": memory.role,
        "content": memory.content,
        "session": memory.session,
        "occurred_at": stamp(memory.occurred_at),
        "importance": memory.importance,
    }


def theme_line(theme: PartialActivation) -> dict[str, Any]:
    """Return a theme on the tip of the tongue as JSON shows it."""
    return {
        "cluster_id": str(theme.cluster_id),
        "name": theme.name,
        "keywords": list(theme.keywords),
        "strength": round(theme.strength, 4),
    }


def render_recalled(found: Sequence[Recalled], themes: Sequence[PartialActivation] = ()) -> RenderableType:
    """Return recalled memories for a terminal: a column for each term where there is room, else a line.

    Below them, the themes that are on the tip of the tongue when none of the memories is clear.
    """
    shown = _wide(found) if console().width >= _WIDE else _narrow(found)
    if not themes:
        return shown
    names = "; ".join(", ".join(theme.keywords) or theme.name for theme in themes)
    return Group(shown, Text(f"Nothing clear, but on the tip of the tongue: {names}", style="italic"))


def _wide(found: Sequence[Recalled]) -> RenderableType:
    made = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    made.add_column("score", justify="right", style="bold")
    for head in TERMS.values():
        made.add_column(head, justify="right", no_wrap=True)
    made.add_column("when", no_wrap=True, style="dim")
    made.add_column("memory", overflow="fold", ratio=1)
    for memory in found:
        terms = memory.terms.as_dict()
        made.add_row(
            f"{memory.score:.2f}",
            *(_number(terms[name], of=memory.score) for name in TERMS),
            f"{memory.occurred_at:%Y-%m-%d}",
            _said(memory),
        )
    return made


def _narrow(found: Sequence[Recalled]) -> RenderableType:
    made = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    made.add_column(justify="right", style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for memory in found:
        receipt = Text(f"{memory.occurred_at:%Y-%m-%d}  {receipt_of(memory.terms)}", style="dim")
        made.add_row(f"{memory.score:.2f}", Group(_said(memory), receipt))
    return made


def receipt_of(terms: ScoreTerms | EpisodeTerms) -> str:
    """Return the terms of a score, the largest term first: `words .31 + meaning .12`."""
    counted = sorted(terms.as_dict().items(), key=lambda term: -term[1])
    return " + ".join(f"{name} {_short(value)}" for name, value in counted if value >= _NOTHING) or "nothing"


def _said(memory: Recalled) -> Text:
    speaker = (f"{memory.role}: ", "cyan") if memory.role else (f"({memory.type}) ", "magenta")
    return Text.assemble(speaker, memory.content)


def _number(value: float, *, of: float) -> Text:
    """Return a term as a cell: blank when it is nothing, bright when it is a good part of the score."""
    if value < _NOTHING:
        return Text("·", style="dim")
    return Text(_short(value), style="green" if value >= of / 4 else "")


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def render_ingested(read: Ingested, *, file: str, agent: str) -> RenderableType:
    """Return the result of an ingestion, for a terminal."""
    if not read.turns and not read.bad:
        return f"{escape(file)} has no turns ({read.format})."
    sessions = "1 session" if read.sessions == 1 else f"{read.sessions:,} sessions"
    new = f"[green]{read.stored:,} new[/green]" if read.stored else "nothing new"
    known = f", {read.duplicates:,} remembered already" if read.duplicates else ""
    head = f"{escape(agent)} read {escape(file)} ({read.format}, {sessions}): {new}{known}."
    if not read.bad:
        return head
    shown = read.bad_lines[:_BAD_SHOWN]
    rest = f", the first {len(shown)}" if read.bad > len(shown) else ""
    lines = "line" if read.bad == 1 else "lines"
    title = f"\n[yellow]{read.bad:,} {lines} could not be read[/yellow]{rest}:"
    return Group(head, title, table(("line", "reason"), ((line.number, line.reason) for line in shown)))
