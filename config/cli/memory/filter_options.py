"""The options by which a recall is narrowed: type, time, session, importance, trust, concept, episode."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from apps.tenants.scope import tenant_transaction
from arbor.memory.filters import RecallFilter
from arbor.memory.values import MemoryType
from config.cli.memory.finding import find_concept, find_episode
from config.cli.tenancy import ChosenAgent
from config.cli.values import Moment

_OPTIONS = (
    click.option(
        "--type",
        "types",
        multiple=True,
        type=click.Choice([each.value for each in MemoryType]),
        help="Of these types.",
    ),
    click.option("--since", type=Moment(), help="That happened since: 2026-05-01."),
    click.option("--until", type=Moment(), help="That happened before."),
    click.option("--session", default="", help="Of one session."),
    click.option("--concept", metavar="NAME", help="Cases of a concept, or of one below it."),
    click.option("--episode", metavar="ID", help="Of one episode."),
    click.option("--min-importance", type=click.FloatRange(0, 1), default=0.0),
    click.option("--min-trust", type=click.FloatRange(0, 1), default=0.0),
)


def filter_options[F: Callable[..., Any]](command: F) -> F:
    """Give a command the options of a filter, which `read_filter` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_filter(
    agent: ChosenAgent,
    *,
    types: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    session: str,
    concept: str | None,
    episode: str | None,
    min_importance: float,
    min_trust: float,
) -> RecallFilter:
    """Return the filter that the options say. Raises Invalid, and NotFound for a concept or an episode."""
    with tenant_transaction(agent.tenant_id):
        concept_id = find_concept(agent, concept) if concept is not None else None
        episode_id = find_episode(agent, episode) if episode is not None else None
    return RecallFilter(
        types=frozenset(MemoryType(each) for each in types),
        since=since,
        until=until,
        session=session,
        concept=concept_id,
        episode=episode_id,
        min_importance=min_importance,
        min_trust=min_trust,
    )
