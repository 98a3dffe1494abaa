"""Add memories by hand: one text, or a conversation from a file."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.markup import escape

from apps.memories.models import Memory
from apps.memories.services.store.create import teach_agent
from apps.memories.services.store.ingest import IngestResult, ingest
from apps.tenants.scope import tenant_transaction
from arbor.memory.conversations.conversation import ConversationFormat
from arbor.memory.importance import OPERATOR
from arbor.memory.values import MemoryType, NewMemory
from arbor.quotations import counted
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.output import progress_bar, table
from config.cli.kit.tenancy import ChosenAgent, actor, with_agent
from config.cli.kit.text_files import read_text

#: The most unreadable lines that are shown.
_BAD_SHOWN = 20


@with_agent
def ingest_file(agent: ChosenAgent, *, file: Path, form: str | None, sample: str | None) -> Output:
    """Add a conversation from a file to an agent's memory. Run again, it adds only what is new."""
    with progress_bar(file.name, "lines") as progress:
        ingested = ingest(
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
        "format": ingested.format,
        "stored": ingested.stored,
        "duplicates": ingested.duplicates,
        "sessions": ingested.sessions,
        "bad": ingested.bad,
        "bad_lines": [{"line": line.number, "reason": line.reason} for line in ingested.bad_lines],
    }
    text = render_ingested(ingested, file=file.name, agent=agent.name)
    unreadable = bool(ingested.bad) and not ingested.turns
    return Output(value, text=text, code=ExitCode.FAILED if unreadable else ExitCode.DONE)


@with_agent
def remember(
    agent: ChosenAgent, *, text: str, kind: str, importance: float | None, expires_at: datetime | None
) -> Output:
    """Add a memory to an agent; the same text twice is one memory. TEXT - is standard input."""
    memory = NewMemory(
        content=read_text(sys.stdin) if text == "-" else text,
        type=MemoryType(kind),
        importance=importance,
        occurred_at=datetime.now(UTC),
        expires_at=expires_at,
        source=OPERATOR,
    )
    stored = teach_agent(tenant_id=agent.tenant_id, agent_id=agent.id, memory=memory, actor=actor())
    # A known memory keeps its own expiry, unless the new one is later.
    with tenant_transaction(agent.tenant_id):
        expiry = Memory.objects.values_list("expires_at", flat=True).get(id=stored.ids[0])
    value = {
        "id": stored.ids[0],
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "new": bool(stored.stored),
        "expires_at": expiry,
    }
    until = f" until {expiry:%Y-%m-%d %H:%M} UTC" if expiry else ""
    text = f"{agent.name} will remember it{until}." if stored.stored else f"{agent.name} knew that already."
    return Output(value, text=f"{text}\n[dim]{stored.ids[0]}[/dim]")


def render_ingested(ingested: IngestResult, *, file: str, agent: str) -> RenderableType:
    """Return the result of an ingestion for a terminal."""
    if not ingested.turns and not ingested.bad:
        return f"{escape(file)} has no turns ({ingested.format})."
    sessions = counted(ingested.sessions, "session")
    new = f"[green]{ingested.stored:,} new[/green]" if ingested.stored else "nothing new"
    known = f", {ingested.duplicates:,} remembered already" if ingested.duplicates else ""
    head = f"{escape(agent)} read {escape(file)} ({ingested.format}, {sessions}): {new}{known}."
    if not ingested.bad:
        return head
    shown = ingested.bad_lines[:_BAD_SHOWN]
    shown_note = f", the first {len(shown)}" if ingested.bad > len(shown) else ""
    title = f"\n[yellow]{counted(ingested.bad, 'line')} could not be read[/yellow]{shown_note}:"
    return Group(head, title, table(("line", "reason"), ((line.number, line.reason) for line in shown)))
