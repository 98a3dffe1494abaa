"""Show and edit the concepts of an agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from rich.markup import escape
from rich.tree import Tree

from apps.memories.models import Memory
from apps.memories.services.graph.concepts import (
    ConceptNode,
    concept_tree,
    concepts_of,
    link_memory_to_concept,
    memories_of_concept,
    merge_concepts,
    set_parent,
)
from config.cli.kit.columns import OutputColumn, listing, number
from config.cli.kit.declarations import Output, is_given
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, short
from config.cli.kit.tenancy import ChosenAgent, audit_act, in_agent_transaction

CASE_COLUMNS = (
    OutputColumn("score", "score", value=lambda case: round(case.score, 4), cell=number),
    OutputColumn("id", "id", value=lambda case: case.memory_id, cell=short),
    OutputColumn("occurred_at", "when", cell=lambda moment: f"{moment:%Y-%m-%d}"),
    OutputColumn("content", "memory", cell=cut),
    OutputColumn("strength"),
    OutputColumn("relevance", value=lambda case: round(case.relevance, 4)),
)


@in_agent_transaction
def list_concepts(agent: ChosenAgent, *, name: str | None, limit: int) -> Output:
    """Show an agent's concepts as a tree, the broader above the narrower; or the memories of one."""
    if name is not None:
        return _show_cases(agent, name, limit)
    if is_given("limit"):
        raise click.UsageError("--limit is for --memories: the tree has all concepts")
    tree = concept_tree(agent_id=agent.id)
    value = {"agent": agent.name, "concepts": [_branch(concept) for concept in tree]}
    return Output(value, text=_draw_tree(tree) if tree else f"{agent.name} has no concept yet.")


@in_agent_transaction
def link_memory(agent: ChosenAgent, *, memory_id: str, concept: str, strength: float) -> Output:
    """Link a memory to a concept by name; a missing concept is created."""
    memory_row_id = find_id(agent, Memory, memory_id)
    link_memory_to_concept(
        agent_id=agent.id, memory_id=memory_row_id, concept_name=concept, strength=strength
    )
    links = concepts_of(memory_id=memory_row_id)
    audit_act(agent, f"linked the memory {memory_row_id} to the concept {concept!r}")
    value = {
        "agent": agent.name,
        "id": memory_row_id,
        "concepts": {link.name: link.strength for link in links},
    }
    return Output(value, text=f"A case of {escape(', '.join(link.name for link in links))}.")


@in_agent_transaction
def place_concept(agent: ChosenAgent, *, concept: str, parent: str | None) -> Output:
    """Move a concept, with its narrower concepts, below another or to the top."""
    set_parent(agent_id=agent.id, concept=concept, parent=parent)
    audit_act(agent, f"put the concept {concept!r} {f'below {parent!r}' if parent else 'at the top'}")
    return Output({"agent": agent.name, "concept": concept, "below": parent}, text="Placed.")


@in_agent_transaction
def merge_into(agent: ChosenAgent, *, remaining: str, gone: str) -> Output:
    """Merge the concept GONE into KEPT: its memories, edges and narrower concepts."""
    merge_concepts(agent_id=agent.id, retained=remaining, gone=gone)
    audit_act(agent, f"merged the concept {gone!r} into {remaining!r}")
    return Output({"agent": agent.name, "kept": remaining, "gone": gone}, text="Merged.")


def _show_cases(agent: ChosenAgent, name: str, limit: int) -> Output:
    return listing(
        "memories",
        memories_of_concept(agent_id=agent.id, name=name, limit=limit),
        CASE_COLUMNS,
        about={"agent": agent.name, "concept": name},
        empty=f"No memory is a case of {escape(name)}.",
    )


def _branch(node: ConceptNode) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.name,
        "description": node.description,
        "memories": node.memories,
        "narrower": [_branch(narrower) for narrower in node.narrower],
    }


def _draw_tree(nodes: Iterable[ConceptNode]) -> Tree:
    root = Tree("concepts", hide_root=True)

    def grow(above: Tree, several: Iterable[ConceptNode]) -> None:
        for node in several:
            grow(above.add(f"{escape(node.name)} [dim]{node.memories}[/dim]"), node.narrower)

    grow(root, nodes)
    return root
