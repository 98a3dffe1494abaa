"""Manage the subscriptions of agents to signals."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.agents.services.lookup import agent_by_name
from apps.knowledge.models import SignalSubscription
from apps.knowledge.services.subscriptions import (
    NewSubscription,
    source_of,
    subscribe,
    subscriptions_of,
    unsubscribe,
)
from arbor.knowledge.subscriptions import SignalSource
from config.cli.kit.columns import OutputColumn, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import format_relative_time
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

_COLUMNS = (
    OutputColumn("names", "signals", cell=", ".join),
    OutputColumn("source", "about", value=lambda row: source_of(row).value),
    OutputColumn("peer", "agent", value=lambda row: _peer(row)),
    OutputColumn("created_by", "by"),
    OutputColumn("created_at", "since", cell=format_relative_time),
    OutputColumn("id", "id"),
)


@in_agent_transaction
def list_all(agent: ChosenAgent) -> Output:
    """List the subscriptions of an agent."""
    return listing(
        "subscriptions",
        subscriptions_of(agent.id),
        _COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} is subscribed to no signals. [bold]arbor agent subscription add --help[/bold]",
    )


@in_agent_transaction
def add(agent: ChosenAgent, *, names: tuple[str, ...], peer: str | None, own: bool) -> Output:
    """Subscribe an agent to signals."""
    if own and peer is not None:
        raise click.UsageError("give --own or --peer, not both")
    source = SignalSource.OWN if own else SignalSource.SHARED if peer is None else SignalSource.PEER
    wanted = NewSubscription(
        names=names, source=source, peer_id=agent_by_name(peer).id if peer is not None else None
    )
    row = subscribe(agent_id=agent.id, wanted=wanted, actor=actor())
    return Output(
        row_to_dict(row, _COLUMNS),
        text=f"[bold]{escape(agent.name)}[/bold] is subscribed to {escape(', '.join(row.names))}.",
    )


@in_agent_transaction
def remove(agent: ChosenAgent, *, subscription_id: str) -> Output:
    """End a subscription of an agent."""
    row_id = find_id(agent, SignalSubscription, subscription_id)
    removed = unsubscribe(agent_id=agent.id, subscription_id=row_id, actor=actor())
    return Output(
        {"removed": row_to_dict(removed, _COLUMNS)},
        text=f"[bold]{escape(agent.name)}[/bold] is no longer subscribed to {escape(', '.join(removed.names))}.",
    )


def _peer(row: SignalSubscription) -> Any:
    return row.source.name if source_of(row) is SignalSource.PEER and row.source is not None else ""
