"""Resolve the names on a command line to rows: an id, the end of an id, a title, or a concept's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate
from uuid import UUID

import click
from django.db.models import CharField, Model, QuerySet
from django.db.models.functions import Cast

from apps.goals.models import Goal
from apps.memories.models import Concept, Memory
from apps.selves.models import Belief, IdentityAspect
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import NotFound
from arbor.goals.values import GoalState, text_key
from arbor.memory.concepts import concept_key, concept_name
from arbor.memory.relations import GraphNode, GraphNodeKind
from config.cli.kit.output import SHORT
from config.cli.kit.tenancy import ChosenAgent, tenant_having

_HINT = f"give an id, or its last {SHORT} characters"

NODES: dict[GraphNodeKind, type[Model]] = {
    GraphNodeKind.MEMORY: Memory,
    GraphNodeKind.CONCEPT: Concept,
    GraphNodeKind.BELIEF: Belief,
    GraphNodeKind.ASPECT: IdentityAspect,
    GraphNodeKind.GOAL: Goal,
}


def find_id(agent: ChosenAgent, model: type[Model], text: str) -> UUID:
    """Return the id that a text names among the agent's rows of a model, in its tenant's transaction.

    Raises NotFound, and UsageError for an end that several ids have.
    """
    return _require_one(_ids_of_agent(agent, model, text), text, agent.name, model)


def _require_one(found: Sequence[UUID], text: str, owner: str, model: type[Model]) -> UUID:
    if not found:
        name = str(model._meta.verbose_name)
        raise NotFound(f"{owner} has no {name} {text!r}: {_HINT}")
    if len(found) > 1:
        ids = ", ".join(map(str, found))
        raise click.UsageError(f"several ids end in {text!r}: give one of {ids}")
    return found[0]


def find_in_tenant(model: type[Model], text: str) -> UUID:
    """Return the id that a text names among all of the current tenant's rows of a model.

    Raises NotFound, and UsageError for an end that several ids have.
    """
    return _require_one(_matching_ids(model._default_manager.all(), text), text, "this tenant", model)


def tenant_of_row(model: type[Model], text: str, slug: str | None) -> UUID:
    """Return the id of the named tenant, of the default one, or of the one with the row that a text names. Raises NotFound."""
    return tenant_having(
        lambda: _filter_rows(model._default_manager.all(), text),
        what=f"{_with_article(model)} {text!r}",
        slug=slug,
        hint=_HINT,
    )


def tenant_of_name(model: type[Model], name: str, slug: str | None) -> UUID:
    """Return the id of the named tenant, of the default one, or of the one with a row of that name. Raises NotFound."""
    return tenant_having(
        lambda: model._default_manager.filter(name=name.strip()),
        what=f"{_with_article(model)} {name!r}",
        slug=slug,
    )


def in_transaction_of[R](
    find_tenant: Callable[[type[Model], str, str | None], UUID], model: type[Model], parameter: str
) -> Callable[[Callable[Concatenate[Tenant, ...], R]], Callable[..., R]]:
    """Resolve `--tenant`, or the only tenant with the row that a parameter names, and run the command in one transaction of it."""

    def resolve(run: Callable[Concatenate[Tenant, ...], R]) -> Callable[..., R]:
        @wraps(run)
        def run_in_transaction(*, tenant_slug: str | None, **parameters: Any) -> R:
            tenant_id = find_tenant(model, parameters[parameter], tenant_slug)
            with tenant_transaction(tenant_id):
                return run(Tenant.objects.get(id=tenant_id), **parameters)

        return run_in_transaction

    return resolve


def _with_article(model: type[Model]) -> str:
    name = str(model._meta.verbose_name)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def find_memories(agent: ChosenAgent, texts: Sequence[str]) -> list[UUID]:
    """Return the ids of the agent's memories that texts name. Raises NotFound."""
    return [find_id(agent, Memory, text) for text in texts]


def find_node(agent: ChosenAgent, text: str) -> GraphNode:
    """Return the memory, concept, belief, aspect or goal that a text names: ID, KIND:ID or concept:NAME.

    Raises NotFound, and UsageError for a text that names several.
    """
    kind, colon, reference = text.partition(":")
    if colon and kind in GraphNodeKind:
        if kind == GraphNodeKind.CONCEPT and (concept_id := _find_concept_id(agent, reference)):
            return GraphNode(GraphNodeKind.CONCEPT, concept_id)
        return GraphNode(GraphNodeKind(kind), find_id(agent, NODES[GraphNodeKind(kind)], reference))
    found = [
        GraphNode(kind, row_id)
        for kind, model in NODES.items()
        for row_id in _ids_of_agent(agent, model, text)
    ]
    if not found:
        kinds = ", ".join(GraphNodeKind)
        raise NotFound(f"{agent.name} has nothing with the id {text!r} among {kinds}")
    if len(found) > 1:
        several = ", ".join(f"{node.kind}:{node.id}" for node in found)
        raise click.UsageError(f"{text!r} names several: give one of {several}")
    return found[0]


def _ids_of_agent(agent: ChosenAgent, model: type[Model], text: str) -> list[UUID]:
    return _matching_ids(model._default_manager.filter(agent_id=agent.id), text)


def _matching_ids(rows: QuerySet[Any], text: str) -> list[UUID]:
    return list(_filter_rows(rows, text).values_list("id", flat=True)[:3])


def _filter_rows(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    key = text.strip().lower()
    try:
        return rows.filter(id=UUID(key))
    except ValueError:
        if len(key) < SHORT:
            return rows.none()
        ending: QuerySet[Any] = rows.annotate(as_text=Cast("id", CharField())).filter(as_text__endswith=key)
        return ending


def find_concept(agent: ChosenAgent, name: str) -> UUID:
    """Return the id of the agent's concept of that name. Raises NotFound."""
    concept_id = _find_concept_id(agent, name)
    if concept_id is None:
        raise NotFound(f"{agent.name} has no concept {concept_name(name)!r}")
    return concept_id


def _find_concept_id(agent: ChosenAgent, name: str) -> UUID | None:
    concept_id: UUID | None = (
        Concept.objects.filter(agent_id=agent.id, key=concept_key(name)).values_list("id", flat=True).first()
    )
    return concept_id


def find_goal(agent: ChosenAgent, wanted: str) -> Goal:
    """Return the agent's goal by title, id or end of an id; an open goal takes precedence over a closed one."""
    goals: list[Goal] = list(Goal.objects.filter(agent_id=agent.id))
    key, end = text_key(wanted), wanted.strip().lower()
    by_title = [goal for goal in goals if text_key(goal.title) == key]
    by_id = [goal for goal in goals if len(end) >= SHORT and str(goal.id).endswith(end)]
    matching = by_title or by_id
    matching = [goal for goal in matching if GoalState(goal.state).is_open] or matching
    if not matching:
        raise NotFound(
            f"{agent.name} has no goal {wanted!r}; `arbor goal list {agent.argument}` shows those there are"
        )
    if len(matching) > 1:
        ids = ", ".join(str(goal.id) for goal in matching)
        raise click.UsageError(f"{wanted!r} names {len(matching)} goals: give one of the ids {ids}")
    return matching[0]
