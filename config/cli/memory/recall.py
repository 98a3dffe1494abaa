"""Recall memories and episodes, with the score components of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apps.memories.models import Episode, Memory
from apps.memories.services.clusters.clusters import find_cluster
from apps.memories.services.jobs.episodes import RecalledEpisode, recall_episodes
from apps.memories.services.recall.explanation import explain_recall
from apps.memories.services.recall.partial_recall import PartialRecall, partial_recall_about
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import tenant_transaction
from arbor.memory.episodes import EpisodeScoreComponents
from arbor.memory.recall.recall_request import EVERYTHING, RecallFilter, RecallRequest
from arbor.memory.values import MemoryType, Recalled, ScoreComponents
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_concept, find_id
from config.cli.kit.output import console, short, stamp
from config.cli.kit.tenancy import ChosenAgent, with_agent
from config.cli.memory.archive import counted_memories


@with_agent
def recall_memories(
    agent: ChosenAgent, /, *, query: str, limit: int, episodes: bool, **filters: Any
) -> Output:
    """Recall an agent's memories about QUERY, best first, with the components of each score."""
    only = _build_filter(agent, **filters)
    if episodes:
        if only != EVERYTHING:
            raise click.UsageError(
                "--episodes recalls whole episodes: leave out what narrows single memories"
            )
        return _recall_episodes(agent, query, limit)
    recalled = recall(
        tenant_id=agent.tenant_id,
        request=RecallRequest(agent_id=agent.id, text=query, limit=limit, only=only),
    )
    clusters = partial_recall_about(
        tenant_id=agent.tenant_id, agent_id=agent.id, text=query, recalled=recalled
    )
    value = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "query": query,
        "results": [recalled_value(memory) for memory in recalled],
        "tip_of_the_tongue": [cluster_value(cluster) for cluster in clusters],
    }
    if only != EVERYTHING and not recalled:
        return Output(value, text=f"{agent.name} remembers nothing of that kind.")
    empty = (
        f"{agent.name} remembers nothing that fits. Give it something:"
        f' [bold]arbor remember {agent.argument} "…"[/bold], or [bold]arbor memory ingest FILE --agent'
        f" {agent.argument}[/bold]"
    )
    return Output(value, text=render_recalled(recalled, clusters) if recalled else empty)


@with_agent
def explain(agent: ChosenAgent, /, *, memory_id: str, query: str, limit: int, **filters: Any) -> Output:
    """Explain why a query recalls a memory or does not, with its score components."""
    only = _build_filter(agent, **filters)
    with tenant_transaction(agent.tenant_id):
        row_id = find_id(agent, Memory, memory_id)
        explanation = explain_recall(
            tenant_id=agent.tenant_id,
            request=RecallRequest(agent_id=agent.id, text=query, limit=limit, only=only),
            absent=row_id,
        )
    absence = explanation.absence
    assert absence is not None
    components = absence.components
    lines = [f"{reason[:1].upper()}{reason[1:]}." for reason in absence.reasons]
    if components is not None:
        lines.append(f"Its score: {components.total:.2f} = {receipt_of(components)}")
    if not explanation.compared:
        lines.append("Meanings were not compared: words alone decided.")
    value = {
        "agent": agent.name,
        "memory_id": str(row_id),
        "recalled": any(memory.id == row_id for memory in explanation.recalled),
        "reasons": list(absence.reasons),
        "components": None if components is None else _rounded(components),
        "compared": explanation.compared,
    }
    return Output(value, text=Text("\n".join(lines)))


def _build_filter(
    agent: ChosenAgent,
    *,
    types: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    session: str,
    concept: str | None,
    cluster: str | None,
    episode: str | None,
    min_importance: float,
    min_trust: float,
) -> RecallFilter:
    """Build the filter from the options. Raises Invalid, and NotFound for a concept, a cluster or an episode."""
    with tenant_transaction(agent.tenant_id):
        concept_id = find_concept(agent, concept) if concept is not None else None
        cluster_id = find_cluster(agent_id=agent.id, named=cluster).id if cluster is not None else None
        episode_id = find_id(agent, Episode, episode) if episode is not None else None
    return RecallFilter(
        types=frozenset(MemoryType(name) for name in types),
        since=since,
        until=until,
        session=session,
        concept=concept_id,
        cluster=cluster_id,
        episode=episode_id,
        min_importance=min_importance,
        min_trust=min_trust,
    )


def _recall_episodes(agent: ChosenAgent, query: str, limit: int) -> Output:
    """Recall whole episodes, best first, with the components of each score."""
    recalled = recall_episodes(tenant_id=agent.tenant_id, agent_id=agent.id, text=query, limit=limit)
    value = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "query": query,
        "episodes": [_episode_value(episode) for episode in recalled],
    }
    empty = f"{escape(agent.name)} has no episode yet: [bold]arbor memory ingest[/bold] makes some."
    return Output(value, text=_render_episodes(recalled) if recalled else empty)


def _episode_value(episode: RecalledEpisode) -> dict[str, Any]:
    return {
        "id": str(episode.id),
        "score": round(episode.score, 4),
        "components": _rounded(episode.components),
        "session": episode.session,
        "started_at": stamp(episode.started_at),
        "last_at": stamp(episode.last_at),
        "ended_at": stamp(episode.ended_at),
        "memories": episode.size,
        "summary": episode.summary,
        "summarized_by": episode.summarized_by,
    }


def _render_episodes(recalled: list[RecalledEpisode]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for episode in recalled:
        about = f"{episode.started_at:%Y-%m-%d %H:%M}  {short(episode.id)}  {counted_memories(episode.size)}  {receipt_of(episode.components)}"
        value = Text(episode.summary) if episode.summary else Text("not summarized yet", style="italic")
        table.add_row(f"{episode.score:.2f}", Group(value, Text(about, style="dim")))
    return table


#: The components of a score in the order of a table, with the head of each column.
COMPONENT_HEADS = {
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
    "activation": "activ",
    "mood": "mood",
}
#: Below this width of the terminal, the components are printed under the memory instead of in columns of their own.
_WIDE_COLUMNS = 140
#: The least value of a score component that is shown.
_MIN_SHOWN = 0.005


def recalled_value(memory: Recalled) -> dict[str, Any]:
    """Return a recalled memory with the components of its score, for JSON."""
    return {
        "id": str(memory.id),
        "score": round(memory.score, 4),
        "components": _rounded(memory.components),
        "type": memory.type,
        "role": memory.role,
        "content": memory.content,
        "details": list(memory.details),
        "session": memory.session,
        "occurred_at": stamp(memory.occurred_at),
        "importance": memory.importance,
    }


def cluster_value(cluster: PartialRecall) -> dict[str, Any]:
    """Return a partial recall as JSON."""
    return {
        "cluster_id": str(cluster.cluster_id),
        "name": cluster.name,
        "keywords": list(cluster.keywords),
        "strength": round(cluster.strength, 4),
    }


def render_recalled(recalled: Sequence[Recalled], clusters: Sequence[PartialRecall] = ()) -> RenderableType:
    """Return recalled memories for a terminal: with a column for each score component if there is room, else a line.

    Partial recalls follow below.
    """
    shown = _render_wide(recalled) if console().width >= _WIDE_COLUMNS else _render_narrow(recalled)
    if not clusters:
        return shown
    names = "; ".join(", ".join(cluster.keywords) or cluster.name for cluster in clusters)
    return Group(shown, Text(f"Nothing clear, but on the tip of the tongue: {names}", style="italic"))


def _render_wide(recalled: Sequence[Recalled]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    table.add_column("score", justify="right", style="bold")
    for head in COMPONENT_HEADS.values():
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("when", no_wrap=True, style="dim")
    table.add_column("memory", overflow="fold", ratio=1)
    for memory in recalled:
        components = memory.components.as_dict()
        table.add_row(
            f"{memory.score:.2f}",
            *(_number(components[name], of=memory.score) for name in COMPONENT_HEADS),
            f"{memory.occurred_at:%Y-%m-%d}",
            _utterance(memory),
        )
    return table


def _render_narrow(recalled: Sequence[Recalled]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for memory in recalled:
        receipt = Text(f"{memory.occurred_at:%Y-%m-%d}  {receipt_of(memory.components)}", style="dim")
        table.add_row(f"{memory.score:.2f}", Group(_utterance(memory), receipt))
    return table


def receipt_of(components: ScoreComponents | EpisodeScoreComponents) -> str:
    """Return the components of a score, the largest first: `words .31 + meaning .12`."""
    counted = sorted(components.as_dict().items(), key=lambda component: -component[1])
    return (
        " + ".join(f"{name} {_format_component(value)}" for name, value in counted if value >= _MIN_SHOWN)
        or "nothing"
    )


def _rounded(components: ScoreComponents | EpisodeScoreComponents) -> dict[str, float]:
    return {name: round(value, 4) for name, value in components.as_dict().items()}


def _utterance(memory: Recalled) -> Text:
    speaker = (f"{memory.role}: ", "cyan") if memory.role else (f"({memory.type}) ", "magenta")
    return Text.assemble(speaker, memory.content, *((f"\n  {detail}", "dim") for detail in memory.details))


def _number(value: float, *, of: float) -> Text:
    """Return a score component as a cell: a dot if it is negligible, green from a quarter of the score on."""
    if value < _MIN_SHOWN:
        return Text("·", style="dim")
    return Text(_format_component(value), style="green" if value >= of / 4 else "")


def _format_component(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")
