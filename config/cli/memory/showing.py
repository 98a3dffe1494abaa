"""`arbor memory show`: one memory with everything that is known of it."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape

from apps.console.pages.memory import MemoryPage, read_memory
from apps.memories.models import Memory
from apps.selves.services.resonance import Resonance, resonance_of
from apps.tenants.scope import tenant_transaction
from config.cli.memory.finding import find_id, short
from config.cli.memory.listing import cut, memory_line
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import choose_agent, tenant_option


@click.command("show")
@click.argument("agent")
@click.argument("memory_id", metavar="ID")
@tenant_option
@json_option
def show_one(agent: str, memory_id: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show one memory: its details, why it weighs what it weighs, where it comes from, what comes to mind with it.

    Only a look: it does not count as a recall.

    \b
    Examples:
      arbor memory show Vega 4cd01f7e
      arbor memory show Vega 4cd01f7e --json
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_id(chosen, Memory, memory_id)
        page = read_memory(
            Memory.objects.select_related("access", "episode")
            .defer("embedding", "episode__embedding", "episode__lexical")
            .get(id=found)
        )
        told = _told(page, resonance_of(agent_id=chosen.id, memory_id=found))
    show(told, as_json=as_json, people=_for_people(told))


def _told(page: MemoryPage, rings: Resonance) -> dict[str, Any]:
    memory, weight = page.memory, page.weight
    return {
        **memory_line(memory),
        "detail": memory.detail,
        "importance_receipt": {
            "stored": memory.importance,
            "by_the_rules": weight.appraisal.importance,
            "reasons": list(weight.appraisal.reasons),
            "with_use": round(weight.effective, 4),
            "left_by_time": round(weight.decayed, 4),
            "relevance": round(weight.relevance, 4),
            "in_mind": round(weight.presence, 4),
        },
        "source": memory.source,
        "access": {
            "recalled": page.recalled,
            "recalled_at": page.recalled_at,
            "reinforced": page.reinforced,
        },
        "practice": (
            {"successes": page.practice.successes, "failures": page.practice.failures}
            if page.practice
            else None
        ),
        "emotional_valence": memory.emotional_valence,
        "decay_rate": memory.decay_rate,
        "archived_at": memory.archived_at,
        "created_at": memory.created_at,
        "embedding_model": memory.embedding_model,
        "terms": page.terms,
        "neighborhood": {
            "computed_at": page.upkeep.computed_at if page.upkeep else None,
            "stale": page.upkeep.stale if page.upkeep else True,
            "neighbors": [
                {"id": each.id, "weight": each.weight, "relation": each.relation, "content": each.text}
                for each in page.neighbors
            ],
        },
        "episode": (
            {
                "id": memory.episode.id,
                "sequence": memory.sequence,
                "summary": memory.episode.summary,
                "beside": [
                    {"id": each.id, "role": each.role, "content": each.content} for each in page.beside
                ],
            }
            if memory.episode
            else None
        ),
        "themes": [
            {"id": each.cluster_id, "name": each.cluster.name, "strength": each.strength}
            for each in page.clusters
        ],
        "concepts": [
            {"id": each.concept_id, "name": each.concept.name, "strength": each.strength}
            for each in page.concepts
        ],
        "resonance": {
            "score": round(rings.score, 4),
            "aspects": [
                {
                    "id": each.aspect_id,
                    "relation": each.relation,
                    "share": round(each.share, 4),
                    "text": each.content,
                }
                for each in rings.aspects
            ],
        },
        "relations": [
            {
                "relation": each.relation,
                "from": "this" if each.outward else f"{each.other.kind}:{each.other.id}",
                "to": f"{each.other.kind}:{each.other.id}" if each.outward else "this",
                "text": each.other.text,
                "weight": each.weight,
                "note": each.note,
                "origin": each.origin,
            }
            for each in page.relations
        ],
    }


def _for_people(told: dict[str, Any]) -> RenderableType:
    parts: list[RenderableType] = [
        f"[bold]{escape(told['content'])}[/bold]",
        f"[dim]{told['id']}[/dim]",
        table(("", ""), _facts(told)),
    ]
    lists = (
        ("What comes to mind with it", ("weight", "id", "memory", "relation"), _neighbors(told)),
        ("Relations", ("", "", "", "text", "weight"), _relations(told)),
        ("Before and after", ("id", "who", "memory"), _beside(told)),
        ("Themes", ("strength", "id", "theme"), _named(told["themes"])),
        ("Concepts", ("strength", "id", "concept"), _named(told["concepts"])),
    )
    for title, columns, rows in lists:
        if rows:
            parts += ["", table(columns, rows, title=title)]
    if told["neighborhood"]["computed_at"] is None:
        parts.append("[dim]Its neighborhood is not computed yet.[/dim]")
    return Group(*parts)


def _facts(told: dict[str, Any]) -> list[tuple[str, str]]:
    receipt, access = told["importance_receipt"], told["access"]
    reasons = ", ".join(receipt["reasons"]) or "nothing stands out"
    kept = (
        f"{told['retention']}, until {told['expires_at']:%Y-%m-%d}"
        if told["expires_at"]
        else told["retention"]
    )
    facts = [
        ("type", f"{told['type']}, {told['status']}"),
        ("happened", f"{told['occurred_at']:%Y-%m-%d %H:%M} UTC, {ago(told['occurred_at'])}"),
        ("said by", told["role"]),
        (
            "importance",
            f"{receipt['stored']:.2f}, {receipt['with_use']:.2f} with use, {receipt['left_by_time']:.2f} left by time",
        ),
        ("by the rules", f"{receipt['by_the_rules']:.2f}: {reasons}"),
        ("relevance", f"{receipt['relevance']:.2f}, {receipt['in_mind']:.0%} in mind"),
        ("trust", f"{told['trust']:.2f}"),
        ("resonance", _resonance(told["resonance"])),
        ("source", told["source"]),
        ("session", told["session"]),
        ("kept as", kept),
        (
            "recalled",
            f"{access['recalled']}×, {ago(access['recalled_at'])}" if access["recalled"] else "never",
        ),
        ("again", f"remembered again {access['reinforced']}×" if access["reinforced"] else ""),
        (
            "worked out",
            f"{told['practice']['successes']} of {sum(told['practice'].values())}"
            if told["practice"]
            else "",
        ),
        ("embedded by", told["embedding_model"] or "nobody yet"),
    ]
    detail = told["detail"] if isinstance(told["detail"], dict) else {}
    facts += [(str(name).replace("_", " "), _written(value)) for name, value in detail.items()]
    return [fact for fact in facts if fact[1]]


def _resonance(rings: dict[str, Any]) -> str:
    by = "; ".join(f"{each['share']:+.2f} {cut(each['text'], 60)}" for each in rings["aspects"])
    return f"{rings['score']:+.2f} with who it takes itself to be: {by}" if by else ""


def _written(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(f"{number}. {_written(each)}" for number, each in enumerate(value, start=1))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {each}" for name, each in value.items())
    return str(value)


def _neighbors(told: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (f"{each['weight']:.2f}", short(each["id"]), cut(each["content"]), each["relation"])
        for each in told["neighborhood"]["neighbors"]
    ]


def _relations(told: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            _end(each["from"]),
            each["relation"].replace("_", " "),
            _end(each["to"]),
            cut(each["text"]),
            f"{each['weight']:.2f}",
        )
        for each in told["relations"]
    ]


def _end(end: str) -> str:
    kind, colon, row_id = end.partition(":")
    return f"{kind} {short(row_id)}" if colon else end


def _beside(told: dict[str, Any]) -> list[tuple[str, ...]]:
    beside = told["episode"]["beside"] if told["episode"] else []
    return [
        (short(each["id"]) + (" *" if each["id"] == told["id"] else ""), each["role"], cut(each["content"]))
        for each in beside
    ]


def _named(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [(f"{each['strength']:.2f}", short(each["id"]), each["name"]) for each in rows]
