"""List and follow signals."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import click

from apps.agents.models import Agent
from apps.signals.services.reading import (
    SignalFilter,
    SignalPage,
    SignalRecord,
    horizon,
    read_latest_signals,
    read_signals,
)
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.signals import CATALOGUE, Cursor
from config.cli.kit.columns import OutputColumn, table_of
from config.cli.kit.declarations import is_given
from config.cli.kit.output import console, cut, json_of, show, stamp, table
from config.cli.kit.tenancy import ChosenAgent, choose_tenant, with_optional_agent

#: Seconds between two reads of `--follow`.
_PAUSE_S = 0.5
#: The most signals of a read of `--follow`.
_MAX_SIGNALS = 500
#: The most agents whose names are read at once.
_MAX_AGENTS = 1_000
_DATA_WIDTH = 100

_COLUMNS = (
    OutputColumn(head="when", value=lambda line: line["at"]),
    OutputColumn(head="agent", value=lambda line: line["agent"]),
    OutputColumn(head="signal", value=lambda line: line["name"]),
    OutputColumn(head="data", value=lambda line: cut(_data_text(line["data"]), _DATA_WIDTH)),
    OutputColumn(head="id", value=lambda line: line["id"]),
)


@with_optional_agent
def list_signals(
    agent: ChosenAgent | None,
    *,
    names: Sequence[str],
    after: str | None,
    limit: int,
    follow: bool,
    catalogue: bool,
    as_json: bool,
    tenant_slug: str | None,
) -> None:
    """List the latest signals, those after a cursor, or each new one."""
    if catalogue:
        if agent or names or after or follow or tenant_slug or is_given("limit"):
            raise click.UsageError("--names lists all names of signals: leave out the other options")
        _show_catalogue(as_json)
        return
    if follow and is_given("limit"):
        raise click.UsageError("--follow prints each new signal: leave out --limit")
    wanted = SignalFilter.of(agents=[agent.id] if agent else [], names=names)
    cursor = Cursor.parse(after) if after is not None else None
    tenant = choose_tenant(tenant_slug)
    if follow:
        _follow(tenant, wanted, cursor, as_json=as_json)
        return
    with tenant_transaction(tenant.id):
        start = horizon()
        if cursor is not None:
            page = read_signals(after=cursor, wanted=wanted, limit=limit)
        else:
            latest = read_latest_signals(wanted=wanted, limit=limit)
            # Oldest first, so that the newest is next to the prompt. The cursor is the end of all signals.
            page = SignalPage(signals=[*reversed(latest.signals)], cursor=start, more=latest.more)
        lines = _signal_values(page.signals)
    value = {"signals": lines, "cursor": str(page.cursor), "more": page.more}
    empty = "No signals. They appear when an agent is created, wakes, learns or is changed."
    show(value, as_json=as_json, text=table_of(lines, _COLUMNS) if lines else empty)


def _follow(tenant: Tenant, wanted: SignalFilter, cursor: Cursor | None, *, as_json: bool) -> None:
    """Print each new signal, one a line, until Ctrl-C."""
    if cursor is None:
        with tenant_transaction(tenant.id):
            cursor = horizon()
    while True:
        with tenant_transaction(tenant.id):
            page = read_signals(after=cursor, wanted=wanted, limit=_MAX_SIGNALS)
            lines = _signal_values(page.signals)
        cursor = page.cursor
        for line in lines:
            if as_json:
                click.echo(json_of(line))
            else:
                console().print(
                    f"{line['at']}  {line['agent']}  {line['name']}  {_data_text(line['data'])}",
                    markup=False,
                    soft_wrap=True,
                )
        if not page.more:
            time.sleep(_PAUSE_S)


def _signal_values(signals: Sequence[SignalRecord]) -> list[dict[str, Any]]:
    """Return signals as JSON with the names of their agents; a destroyed agent is named by its id."""
    ids = {record.agent_id for record in signals if record.agent_id}
    names: dict[UUID, str] = dict(Agent.objects.filter(id__in=ids).values_list("id", "name")[:_MAX_AGENTS])
    return [
        {
            **record.as_json(),
            "at": stamp(record.at),
            "agent": names.get(record.agent_id, str(record.agent_id)) if record.agent_id else "",
        }
        for record in signals
    ]


def _show_catalogue(as_json: bool) -> None:
    names = {
        name.value: {"meaning": kind.meaning, "data": dict(kind.fields)} for name, kind in CATALOGUE.items()
    }
    rows = ((name, kind["meaning"], ", ".join(kind["data"])) for name, kind in names.items())
    show({"names": names}, as_json=as_json, text=table(("signal", "meaning", "data"), rows))


def _data_text(data: dict[str, Any]) -> str:
    """Return the data in one line: `count=2 …`, without lists of ids."""
    return " ".join(f"{name}={value}" for name, value in data.items() if not isinstance(value, list))
