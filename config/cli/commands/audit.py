"""The commands about the audit log."""

from __future__ import annotations

import click

from arbor.audit.levels import AuditLevel
from config.cli.kit.declarations import argument, group, one_of, option, tenant_command
from config.cli.kit.values import DurationType, MomentType

_FILTERS: tuple[click.Parameter, ...] = (
    option("--agent", metavar="NAME", help="Only acts that concern this agent."),
    option(
        "--actor",
        default="",
        help="Only acts of this actor, or of all whose name begins so: `user:nora`, `cli:`.",
    ),
    option(
        "--action",
        "actions",
        metavar="ACT",
        multiple=True,
        help="Only this act: `policy.changed`. Can be repeated.",
    ),
    option(
        "--level", "levels", type=one_of(AuditLevel), multiple=True, help="Only this level. Can be repeated."
    ),
    option("--since", type=DurationType(), metavar="SPAN", help="Only the latest: 12h, 30d."),
    option("--until", type=MomentType(), metavar="MOMENT", help="Only what was before: 2026-12-24T18:00Z."),
)
_PAGE: tuple[click.Parameter, ...] = (
    option(
        "--limit",
        type=click.IntRange(1, 500),
        default=50,
        help="Maximum number of records.",
    ),
    option(
        "--before",
        metavar="ID",
        type=click.UUID,
        help="Continue after this record, the last one of the page before.",
    ),
)
_ALL = option("--all", "every", is_flag=True, help="All tenants, and the installation's own records.")

_audit = group(
    "audit",
    "Search, export and verify the audit log.",
    tenant_command(
        "list",
        "List the latest acts: who did what, and when.",
        *_FILTERS,
        *_PAGE,
        run="audit:list_events",
        examples=("arbor audit list --level warning --since 7d", "arbor audit list --agent Vega --json"),
    ),
    tenant_command(
        "search",
        "Search the messages of acts; all words must occur, regardless of case.",
        argument("words"),
        *_FILTERS,
        *_PAGE,
        run="audit:search_events",
        examples=("arbor audit search 'daily limit' --actor user:",),
    ),
    tenant_command(
        "show",
        "Show one act with its detail and what it changed.",
        argument("event_id", metavar="ID", type=click.UUID),
        run="audit:show_event",
        examples=("arbor audit show 019c…",),
    ),
    tenant_command(
        "export",
        "Write acts to a file, one JSON object a line, oldest first; `-` is standard output.",
        argument("file", type=click.File("w", encoding="utf-8", atomic=True), default="-"),
        option("--words", default="", help="Only messages with all of these words."),
        *_FILTERS,
        run="audit:export",
        json=False,
        details="The export is audited.",
        examples=("arbor audit export --since 30d > audit.jsonl",),
    ),
    tenant_command(
        "verify",
        "Verify the chain of seals: name the first broken link, and what is not sealed yet.",
        _ALL,
        option(
            "--heads",
            type=click.File("r", encoding="utf-8"),
            help="Exported heads that the chain must contain: ARBOR_AUDIT_HEADS_FILE, or lines `audit_head_sealed` of a log in JSON.",
        ),
        run="audit:verify",
        details="Reads all sealed rows again. The exit code is 1 if a link is broken. Only --heads finds a cut-off end.",
        examples=("arbor audit verify --tenant acme", "arbor audit verify --all --heads heads.jsonl --json"),
    ),
    tenant_command(
        "head",
        "Show the last seal, to store it where nobody can change it.",
        _ALL,
        run="audit:show_heads",
        examples=("arbor audit head --all --json",),
    ),
    details="docs/how-to/audit-log.md says what a broken link means.",
)

COMMANDS = (_audit,)
