"""Show one memory with its details, importance, neighborhood and relations."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from apps.console.pages.memory import MemoryPage, read_memory
from apps.memories.models import Memory
from apps.selves.services.alignment import IdentityResonance, resonance_of
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, format_relative_time, short, table
from config.cli.kit.tenancy import ChosenAgent, in_agent_transaction
from config.cli.memory.listing import memory_value


@in_agent_transaction
def show_memory(agent: ChosenAgent, *, memory_id: str) -> Output:
    """Show a memory: its details, the reasons for its importance, its sources and its neighborhood."""
    memory_row_id = find_id(agent, Memory, memory_id)
    page = read_memory(
        Memory.objects.select_related("access", "episode", "pin")
        .defer("embedding", "episode__embedding", "episode__lexical")
        .get(id=memory_row_id)
    )
    shown = _memory_value(page, resonance_of(agent_id=agent.id, memory_id=memory_row_id))
    return Output(shown, text=_for_people(shown))


def _memory_value(page: MemoryPage, resonance: IdentityResonance) -> dict[str, Any]:
    memory, weight = page.memory, page.weight
    return {
        **memory_value(memory),
        "detail": memory.detail,
        "importance_receipt": {
            "stored": memory.importance,
            "by_the_rules": weight.appraisal.importance,
            "reasons": list(weight.appraisal.reasons),
            "with_use": round(weight.effective, 4),
            "left_by_time": round(weight.decayed, 4),
            "relevance": round(weight.relevance, 4),
            "activation": round(weight.presence, 4),
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
        "pinned": {"at": page.pin.pinned_at, "by": page.pin.pinned_by} if page.pin else None,
        "created_at": memory.created_at,
        "embedding_model": memory.embedding_model,
        "terms": page.terms,
        "neighborhood": {
            "computed_at": page.upkeep.computed_at if page.upkeep else None,
            "stale": page.upkeep.stale if page.upkeep else True,
            "neighbors": [
                {
                    "id": neighbor.id,
                    "weight": neighbor.weight,
                    "relation": neighbor.relation,
                    "content": neighbor.text,
                }
                for neighbor in page.neighbors
            ],
        },
        "episode": (
            {
                "id": memory.episode.id,
                "sequence": memory.sequence,
                "summary": memory.episode.summary,
                "beside": [
                    {"id": turn.id, "role": turn.role, "content": turn.content} for turn in page.beside
                ],
            }
            if memory.episode
            else None
        ),
        "clusters": [
            {"id": member.cluster_id, "name": member.cluster.name, "strength": member.strength}
            for member in page.clusters
        ],
        "concepts": [
            {"id": concept.concept_id, "name": concept.concept.name, "strength": concept.strength}
            for concept in page.concepts
        ],
        "resonance": {
            "score": round(resonance.score, 4),
            "aspects": [
                {
                    "id": aspect.aspect_id,
                    "relation": aspect.relation,
                    "share": round(aspect.share, 4),
                    "text": aspect.content,
                }
                for aspect in resonance.aspects
            ],
        },
        "relations": [
            {
                "relation": relation.relation,
                "from": "this" if relation.outward else f"{relation.other.kind}:{relation.other.id}",
                "to": f"{relation.other.kind}:{relation.other.id}" if relation.outward else "this",
                "text": relation.other.text,
                "weight": relation.weight,
                "note": relation.note,
                "origin": relation.origin,
            }
            for relation in page.relations
        ],
    }


def _for_people(shown: dict[str, Any]) -> RenderableType:
    parts: list[RenderableType] = [
        f"[bold]{escape(shown['content'])}[/bold]",
        f"[dim]{shown['id']}[/dim]",
        table(("", ""), _facts(shown)),
    ]
    lists = (
        ("Neighborhood", ("weight", "id", "memory", "relation"), _neighbors(shown)),
        ("Relations", ("", "", "", "text", "weight"), _relations(shown)),
        ("Before and after", ("id", "who", "memory"), _turns_beside(shown)),
        ("Clusters", ("strength", "id", "cluster"), _name_rows(shown["clusters"])),
        ("Concepts", ("strength", "id", "concept"), _name_rows(shown["concepts"])),
    )
    for title, columns, rows in lists:
        if rows:
            parts += ["", table(columns, rows, title=title)]
    if shown["neighborhood"]["computed_at"] is None:
        parts.append("[dim]Its neighborhood is not computed yet.[/dim]")
    return Group(*parts)


def _facts(shown: dict[str, Any]) -> list[tuple[str, str]]:
    receipt, access = shown["importance_receipt"], shown["access"]
    reasons = ", ".join(receipt["reasons"]) or "nothing stands out"
    retention = (
        f"{shown['retention']}, until {shown['expires_at']:%Y-%m-%d}"
        if shown["expires_at"]
        else shown["retention"]
    )
    facts = [
        ("type", f"{shown['type']}, {shown['status']}"),
        (
            "happened",
            f"{shown['occurred_at']:%Y-%m-%d %H:%M} UTC, {format_relative_time(shown['occurred_at'])}",
        ),
        ("said by", shown["role"]),
        (
            "importance",
            f"{receipt['stored']:.2f}, {receipt['with_use']:.2f} with use, {receipt['left_by_time']:.2f} left by time",
        ),
        ("by the rules", f"{receipt['by_the_rules']:.2f}: {reasons}"),
        ("relevance", f"{receipt['relevance']:.2f}, activation {receipt['activation']:.0%}"),
        ("trust", f"{shown['trust']:.2f}"),
        ("resonance", _resonance(shown["resonance"])),
        ("source", shown["source"]),
        ("session", shown["session"]),
        ("retention", retention),
        (
            "pinned",
            f"{format_relative_time(shown['pinned']['at'])} by {shown['pinned']['by']}"
            if shown["pinned"]
            else "",
        ),
        (
            "recalled",
            f"{access['recalled']}×, {format_relative_time(access['recalled_at'])}"
            if access["recalled"]
            else "never",
        ),
        ("reinforced", f"{access['reinforced']}×, by being remembered again" if access["reinforced"] else ""),
        (
            "succeeded",
            f"{shown['practice']['successes']} of {sum(shown['practice'].values())}"
            if shown["practice"]
            else "",
        ),
        ("embedded by", shown["embedding_model"] or "nobody yet"),
    ]
    detail = shown["detail"] if isinstance(shown["detail"], dict) else {}
    facts += [(str(name).replace("_", " "), _format_value(value)) for name, value in detail.items()]
    return [fact for fact in facts if fact[1]]


def _resonance(resonance: dict[str, Any]) -> str:
    aspects = "; ".join(
        f"{aspect['share']:+.2f} {cut(aspect['text'], 60)}" for aspect in resonance["aspects"]
    )
    return f"{resonance['score']:+.2f} with the agent's identity: {aspects}" if aspects else ""


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(f"{number}. {_format_value(part)}" for number, part in enumerate(value, start=1))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {part}" for name, part in value.items())
    return str(value)


def _neighbors(shown: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (f"{neighbor['weight']:.2f}", short(neighbor["id"]), cut(neighbor["content"]), neighbor["relation"])
        for neighbor in shown["neighborhood"]["neighbors"]
    ]


def _relations(shown: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            _end(relation["from"]),
            relation["relation"].replace("_", " "),
            _end(relation["to"]),
            cut(relation["text"]),
            f"{relation['weight']:.2f}",
        )
        for relation in shown["relations"]
    ]


def _end(end: str) -> str:
    kind, colon, row_id = end.partition(":")
    return f"{kind} {short(row_id)}" if colon else end


def _turns_beside(shown: dict[str, Any]) -> list[tuple[str, ...]]:
    beside = shown["episode"]["beside"] if shown["episode"] else []
    return [
        (
            short(memory["id"]) + (" *" if memory["id"] == shown["id"] else ""),
            memory["role"],
            cut(memory["content"]),
        )
        for memory in beside
    ]


def _name_rows(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [(f"{row['strength']:.2f}", short(row["id"]), row["name"]) for row in rows]
