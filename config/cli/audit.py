"""Search, export and verify the audit log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, TextIO
from uuid import UUID

from rich.markup import escape

from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services.chains import AuditChain
from apps.audit.services.export import export_audit
from apps.audit.services.search import AuditFilter, find_event, older_than
from apps.audit.services.verification import ChainReport
from apps.fleet.audit_heads import head_json, read_heads
from apps.fleet.audit_seals import all_chains, verify_audit
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.audit.levels import AuditLevel
from arbor.clock import SystemClock
from arbor.errors import Invalid
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, listing, row_to_dict, table_of
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.output import format_relative_time, print_note, stamp
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    choose_tenant,
    in_tenant_transaction,
    with_optional_agent,
)
from config.cli.kit.text_files import read_text

_COLUMNS = (
    OutputColumn("id", "id"),
    OutputColumn("at", "when", value=lambda row: stamp(row.at), cell=lambda at: str(at)[:19]),
    OutputColumn("level", "level"),
    OutputColumn("action", "act"),
    OutputColumn("actor", "actor"),
    OutputColumn("message", "message"),
)
_DETAILS = (
    *_COLUMNS,
    OutputColumn("agent_id", "agent", cell=lambda agent_id: agent_id or "-"),
    OutputColumn("detail", "detail"),
    OutputColumn("before", "before"),
    OutputColumn("after", "after"),
)


@with_optional_agent
def list_events(agent: ChosenAgent | None, /, **parameters: Any) -> Output:
    """List the latest acts that pass the filters."""
    return _list_page(agent, words="", **parameters)


@with_optional_agent
def search_events(agent: ChosenAgent | None, /, *, words: str, **parameters: Any) -> Output:
    """List the latest acts whose message has all words."""
    return _list_page(agent, words=words, **parameters)


def _list_page(
    agent: ChosenAgent | None, *, limit: int, before: UUID | None, tenant_slug: str | None, **filters: Any
) -> Output:
    wanted = _build_filter(agent, **filters)
    tenant = choose_tenant(tenant_slug)
    with tenant_transaction(tenant.id):
        rows = wanted.filter_rows(AuditEvent.objects.order_by("-at", "-id"))
        if before is not None:
            rows = older_than(rows, before)
        further = list(rows[: limit + 1])
    found = further[:limit]
    if len(further) > limit:
        print_note(f"more with --before {found[-1].id}")
    output = listing("events", found, _COLUMNS, empty="No such acts.", about={"tenant": tenant.slug})
    return Output({**output.value, "events": [row_to_dict(row, _DETAILS) for row in found]}, text=output.text)


@in_tenant_transaction
def show_event(_tenant: Tenant, *, event_id: UUID) -> Output:
    """Show one act."""
    row = find_event(event_id)
    value = row_to_dict(row, _DETAILS)
    lines = (
        f"[dim]{name}[/dim] {escape(str(part))}" for name, part in value.items() if part not in (None, {})
    )
    return Output(value, text="\n".join(lines))


@with_optional_agent
def export(
    agent: ChosenAgent | None, /, *, file: TextIO, words: str, tenant_slug: str | None, **filters: Any
) -> ExitCode:
    """Write acts as JSON lines."""
    wanted = _build_filter(agent, words=words, **filters)
    count = 0
    for part in export_audit(choose_tenant(tenant_slug).id, wanted=wanted, actor=actor()):
        file.write(part)
        count += part.count("\n")
    print_note(f"exported {counted(count, 'record')}")
    return ExitCode.DONE


def verify(*, every: bool, heads: TextIO | None, tenant_slug: str | None) -> Output:
    """Verify chains; the exit code is a failure if a link is broken."""
    exported = read_heads(read_text(heads).split("\n")) if heads else {}
    reports = [
        (slug, verify_audit(chain, heads=exported.get(chain.name)))
        for slug, chain in _select_chains(every=every, tenant_slug=tenant_slug)
    ]
    broken = any(report.faults for _, report in reports)
    if heads:
        _print_uncompared(exported.keys(), reports, every=every)
    text = "\n".join(_sentence(slug, report) for slug, report in reports)
    return Output(
        {"intact": not broken, "chains": [_report_json(slug, report) for slug, report in reports]},
        text=text,
        code=ExitCode.FAILED if broken else ExitCode.DONE,
    )


def _print_uncompared(exported: Set[str], reports: Sequence[tuple[str, ChainReport]], *, every: bool) -> None:
    """Name the chains whose ends were not compared, and the exported heads whose chains are gone."""
    without_head = [slug or "the installation" for slug, report in reports if not report.heads]
    if without_head:
        print_note(f"no exported head of {', '.join(without_head)}: a cut-off end would not be found")
    gone = sorted(exported - {report.chain for _, report in reports}) if every else []
    if gone:
        print_note(f"there is no chain {', '.join(gone)}: deleted with its tenant, or by force")


def show_heads(*, every: bool, tenant_slug: str | None) -> Output:
    """Show the last seals."""
    found = [
        (slug, head_json(chain, seal))
        for slug, chain in _select_chains(every=every, tenant_slug=tenant_slug)
        if (seal := chain.head())
    ]
    columns = (
        OutputColumn(head="chain", value=lambda line: line[0] or "the installation"),
        OutputColumn(head="seal", value=lambda line: line[1]["number"]),
        OutputColumn(
            head="when", value=lambda line: format_relative_time(datetime.fromisoformat(line[1]["at"]))
        ),
        OutputColumn(head="digest", value=lambda line: line[1]["digest"]),
    )
    empty = "Nothing is sealed yet: the job `arbor.outbox.seal_audit` seals what was committed, by default every 30 seconds."
    return Output({"heads": [head for _, head in found]}, text=table_of(found, columns) if found else empty)


def _select_chains(*, every: bool, tenant_slug: str | None) -> Iterator[tuple[str, AuditChain]]:
    if every and tenant_slug:
        raise Invalid("choose one tenant with --tenant, or all with --all, not both")
    if every:
        yield from all_chains()
    else:
        tenant = choose_tenant(tenant_slug)
        yield tenant.slug, AuditChain(tenant_id=tenant.id)


def _build_filter(
    agent: ChosenAgent | None,
    *,
    words: str,
    actor: str,
    actions: Sequence[str],
    levels: Sequence[str],
    since: timedelta | None,
    until: datetime | None,
) -> AuditFilter:
    unknown = [action for action in actions if action not in AuditAction.values]
    if unknown:
        raise Invalid(f"there is no act {unknown[0]!r}; there are: {', '.join(AuditAction.values)}")
    return AuditFilter(
        words=words,
        actor=actor,
        actions=[AuditAction(action) for action in actions],
        levels=[AuditLevel(level) for level in levels],
        agent_id=agent.id if agent else None,
        since=_moment_before_now(since) if since else None,
        until=until,
    )


def _moment_before_now(span: timedelta) -> datetime | None:
    """Return the moment a span ago; None for one before the first year, so for all acts."""
    try:
        return SystemClock().now() - span
    except OverflowError:
        return None


def _sentence(slug: str, report: ChainReport) -> str:
    name = escape(slug or "the installation")
    verified = f"{counted(report.seals, 'seal')} over {_rows(report.events, report.heartbeats)}"
    aged = f", {report.aged} deleted by age or with their agent" if report.aged else ""
    if report.aged_unsealed:
        aged += f" ({report.aged_unsealed} by a record that is not sealed yet)"
    unsealed = (
        f"; not sealed yet: {_rows(report.unsealed_events, report.unsealed_heartbeats)}"
        if report.unsealed_events or report.unsealed_heartbeats
        else ""
    )
    if report.broken_at is None:
        return f"[green]✓[/green] {name}: {verified}{aged}{unsealed}"
    more = f" and {counted(report.fault_count - 1, 'more fault')}" if report.fault_count > 1 else ""
    return f"[red]✗[/red] {name}: {escape(str(report.broken_at))}{more}. {verified}{aged}{unsealed}"


def _rows(events: int, heartbeats: int) -> str:
    return f"{counted(events, 'record')} and {counted(heartbeats, 'heartbeat')}"


def _report_json(slug: str, report: ChainReport) -> dict[str, Any]:
    return {"tenant": slug or None, **report.as_json()}
