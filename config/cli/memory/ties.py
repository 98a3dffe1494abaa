"""Ties of the knowledge graph, and what was found along them, as commands show them."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from arbor.memory.walks import MAX_NODES, Answer, Found, Tie
from config.cli.memory.finding import short
from config.cli.memory.listing import cut
from config.cli.output import show, table


def show_found(agent: str, found: Answer[Found], as_json: bool, nothing: str) -> None:
    """Print what was found along ties, or that there is nothing."""
    people: Any = table(
        ("edges", "kind", "id", "text", "by"),
        (
            (
                each.hops,
                each.kind,
                short(each.id),
                cut(each.label),
                " · ".join(tie.relation.replace("_", " ") for tie in each.path),
            )
            for each in found.found
        ),
        title=bounded_note(found),
    )
    told = {
        "agent": agent,
        "found": [found_value(each) for each in found.found],
        "bounded": found.bounded,
    }
    show(told, as_json=as_json, people=people if found.found else nothing)


def bounded_note(found: Answer[Any]) -> str | None:
    """Return the words that go above a list that is not whole."""
    return f"Bounded: the first {MAX_NODES:,}; there are more." if found.bounded else None


def found_value(found: Found) -> dict[str, Any]:
    """Return what was found, with the ties that lead there, as JSON."""
    return {
        "kind": found.kind,
        "id": found.id,
        "text": found.label,
        "hops": found.hops,
        "path": [tie_value(tie) for tie in found.path],
    }


def tie_value(tie: Tie) -> dict[str, Any]:
    """Return a tie as JSON."""
    return {
        "source": f"{tie.source.kind}:{tie.source.id}",
        "relation": str(tie.relation),
        "target": f"{tie.target.kind}:{tie.target.id}",
        "weight": tie.weight,
    }


def tie_text(tie: Tie) -> str:
    """Return a tie in words, safe to print."""
    relation = tie.relation.replace("_", " ")
    return escape(
        f"{tie.source.kind} {short(tie.source.id)} {relation} {tie.target.kind} {short(tie.target.id)}"
    )
