"""Add memories by hand: one text, or a conversation from a file."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.markup import escape

from apps.memories.services.store.create import teach_agent
from apps.memories.services.store.ingest import Ingested, ingest
from arbor.memory.conversation import ConversationFormat
from arbor.memory.values import MemoryType, NewMemory
from config.cli.kit import ExitCode, Output
from config.cli.output import progress_bar, table
from config.cli.tenancy import ChosenAgent, actor, with_agent

#: Where a memory comes from that a person gave.
SOURCE = "operator"
#: Unreadable lines that are shown.
_BAD_SHOWN = 20


@with_agent
def ingest_file(agent: ChosenAgent, *, file: Path, form: str | None, sample: str | None) -> Output:
    """Add a conversation from a file to an agent's memory. Run again, it adds only what is new."""
    with progress_bar(file.name, "lines") as progress:
        read = ingest(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            path=file,
            actor=actor(),
            form=ConversationFormat(form) if form else None,
            sample=sample,
            progress=progress,
        )
    value = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "file": file.name,
        "format": read.format,
        "stored": read.stored,
        "duplicates": read.duplicates,
        "sessions": read.sessions,
        "bad": read.bad,
        "bad_lines": [{"line": line.number, "reason": line.reason} for line in read.bad_lines],
    }
    people = render_ingested(read, file=file.name, agent=agent.name)
    unreadable = bool(read.bad) and not read.turns
    return Output(value, people=people, code=ExitCode.FAILED if unreadable else ExitCode.DONE)


@with_agent
def remember(
    agent: ChosenAgent, *, text: str, kind: str, importance: float | None, expires_at: datetime | None
) -> Output:
    """Add a memory to an agent; the same text twice is one memory. TEXT - is standard input."""
    memory = NewMemory(
        content=sys.stdin.read() if text == "-" else text,
        type=MemoryType(kind),
        importance=importance,
        occurred_at=datetime.now(UTC),
        expires_at=expires_at,
        source=SOURCE,
    )
    stored = teach_agent(tenant_id=agent.tenant_id, agent_id=agent.id, memory=memory, actor=actor())
    value = {
        "id": stored.ids[0],
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "new": bool(stored.stored),
        "expires_at": expires_at,
    }
    until = f" until {expires_at:%Y-%m-%d %H:%M} UTC" if expires_at else ""
    people = f"{agent.name} will remember it{until}." if stored.stored else f"{agent.name} knew that already."
    return Output(value, people=f"{people}\n[dim]{stored.ids[0]}[/dim]")


def render_ingested(read: Ingested, *, file: str, agent: str) -> RenderableType:
    """Return the result of an ingestion, for a terminal."""
    if not read.turns and not read.bad:
        return f"{escape(file)} has no turns ({read.format})."
    sessions = "1 session" if read.sessions == 1 else f"{read.sessions:,} sessions"
    new = f"[green]{read.stored:,} new[/green]" if read.stored else "nothing new"
    known = f", {read.duplicates:,} remembered already" if read.duplicates else ""
    head = f"{escape(agent)} read {escape(file)} ({read.format}, {sessions}): {new}{known}."
    if not read.bad:
        return head
    shown = read.bad_lines[:_BAD_SHOWN]
    rest = f", the first {len(shown)}" if read.bad > len(shown) else ""
    lines = "line" if read.bad == 1 else "lines"
    title = f"\n[yellow]{read.bad:,} {lines} could not be read[/yellow]{rest}:"
    return Group(head, title, table(("line", "reason"), ((line.number, line.reason) for line in shown)))
