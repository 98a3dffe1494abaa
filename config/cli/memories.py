"""`arbor ingest`, `arbor remember` and `arbor recall`: an agent's memory, by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from apps.memories.services.recall.doors import recall
from apps.memories.services.recall.tip_of_the_tongue import tip_of_the_tongue_about
from apps.memories.services.store.ingest import OnProgress, ingest
from apps.memories.services.store.teaching import teach_agent
from arbor.memory.conversation import ConversationFormat
from arbor.memory.filters import EVERYTHING
from arbor.memory.recall_request import MAX_LIMIT
from arbor.memory.values import MemoryType, NewMemory
from config.cli.memory.filter_options import filter_options, read_filter
from config.cli.memory.recalled_episodes import show_recalled_episodes
from config.cli.memory_views import recalled_line, render_ingested, render_recalled, theme_line
from config.cli.output import console, json_option, show
from config.cli.tenancy import actor, choose_agent, tenant_option
from config.cli.values import Expiry

#: Where a memory comes from that a person gave.
SOURCE = "operator"


@click.command("ingest")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--agent", "name", required=True, metavar="NAME", help="Whose memory it goes into.")
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in ConversationFormat]),
    help="How the file is written.  [default: found out]",
)
@click.option("--sample", help="Which dialog, of a LoCoMo file with several.")
@tenant_option
@json_option
def ingest_file(
    file: Path, name: str, form: str | None, sample: str | None, tenant_slug: str | None, as_json: bool
) -> None:
    """Read a conversation into an agent's memory. Run again it adds what is not there yet.

    FILE is LoCoMo's JSON (locomo), a JSON object with role, content and perhaps timestamp per line (messages), or
    `Speaker: text` per line, perhaps with [2024-05-01 10:30] before it (plain). Lines that cannot be read are listed
    and stop nothing; exit code 1 when none can be.

    \b
    Examples:
      arbor ingest chat.jsonl --agent Vega
      arbor ingest locomo10.json --sample conv-26 --agent Vega --tenant acme
    """
    agent = choose_agent(name, tenant_slug)
    with _bar(file.name) as progress:
        read = ingest(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            path=file,
            actor=actor(),
            form=ConversationFormat(form) if form else None,
            sample=sample,
            progress=progress,
        )
    told = {
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
    show(told, as_json=as_json, people=render_ingested(read, file=file.name, agent=agent.name))
    if read.bad and not read.turns:
        raise click.exceptions.Exit(1)


@contextmanager
def _bar(title: str) -> Iterator[OnProgress]:
    """Show a progress bar on a terminal's standard error; elsewhere nothing."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("lines"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console(err=True), transient=True, disable=not sys.stderr.isatty())
    with bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@click.command("remember")
@click.argument("name")
@click.argument("text")
@click.option(
    "--type",
    "kind",
    type=click.Choice([kind.value for kind in MemoryType]),
    default=MemoryType.SEMANTIC.value,
    show_default=True,
    help="What happened, what is so, how it is done, or what helps to decide.",
)
@click.option(
    "--importance",
    type=click.FloatRange(0, 1),
    help="How much it matters.  [default: by what it says]",
)
@click.option(
    "--expires", "expires_at", type=Expiry(), help="When it may go: 2d, or a date.  [default: never]"
)
@tenant_option
@json_option
def remember_text(
    name: str,
    text: str,
    kind: str,
    importance: float | None,
    expires_at: datetime | None,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Give an agent something to remember; the same text twice is one memory. TEXT - is standard input.

    \b
    Examples:
      arbor remember Vega "The archive opens at nine."
      arbor remember Vega "The gate code is 4711." --expires 2d --importance 0.9
    """
    agent = choose_agent(name, tenant_slug)
    memory = NewMemory(
        content=sys.stdin.read() if text == "-" else text,
        type=MemoryType(kind),
        importance=importance,
        occurred_at=datetime.now(UTC),
        expires_at=expires_at,
        source=SOURCE,
    )
    stored = teach_agent(tenant_id=agent.tenant_id, agent_id=agent.id, memory=memory, actor=actor())
    told = {
        "id": stored.ids[0],
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "new": bool(stored.stored),
        "expires_at": expires_at,
    }
    until = f" until {expires_at:%Y-%m-%d %H:%M} UTC" if expires_at else ""
    people = f"{agent.name} will remember it{until}." if stored.stored else f"{agent.name} knew that already."
    show(told, as_json=as_json, people=f"{people}\n[dim]{stored.ids[0]}[/dim]")


@click.command("recall")
@click.argument("name")
@click.argument("query")
@click.option(
    "-k",
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    default=10,
    show_default=True,
    help="How many memories.",
)
@click.option("--episodes", is_flag=True, help="Recall whole episodes, by their summaries.")
@filter_options
@tenant_option
@json_option
def recall_memories(
    name: str,
    query: str,
    limit: int,
    episodes: bool,
    tenant_slug: str | None,
    as_json: bool,
    **narrowed: Any,
) -> None:
    """Show what an agent remembers about QUERY, best first, with what each term adds to the score.

    Only a look: it does not count as the agent's own recall. Terms: meaning, words, neighbours (what was said just
    before and after), association (what comes to mind with it), session, episode, speaker, time (the query names one),
    recency, importance, trust, activation (what is in mind), mood.

    \b
    Examples:
      arbor recall Vega "What did Nora plant in May?"
      arbor recall Vega quince -k 3 --json
      arbor recall Vega "what was decided" --type episodic --since 2026-05-01 --min-importance 0.6
      arbor recall Vega "the garden in spring" --episodes
    """
    agent = choose_agent(name, tenant_slug)
    only = read_filter(agent, **narrowed)
    if episodes:
        if only != EVERYTHING:
            raise click.UsageError(
                "--episodes recalls whole episodes: leave out what narrows single memories"
            )
        show_recalled_episodes(agent, query, limit, as_json=as_json)
        return
    found = recall(tenant_id=agent.tenant_id, agent_id=agent.id, text=query, limit=limit, only=only)
    themes = tip_of_the_tongue_about(tenant_id=agent.tenant_id, agent_id=agent.id, text=query, recalled=found)
    told = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "query": query,
        "results": [recalled_line(memory) for memory in found],
        "tip_of_the_tongue": [theme_line(theme) for theme in themes],
    }
    if only != EVERYTHING and not found:
        show(told, as_json=as_json, people=f"{agent.name} remembers nothing of that kind.")
        return
    empty = (
        f"{agent.name} remembers nothing that fits. Give it something:"
        f' [bold]arbor remember {escape(agent.name)} "…"[/bold], or [bold]arbor ingest FILE --agent'
        f" {escape(agent.name)}[/bold]"
    )
    show(told, as_json=as_json, people=render_recalled(found, themes) if found else empty)
