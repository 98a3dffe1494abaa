"""`arbor code`: the code that an agent keeps."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.memories.models import CodeSnippet
from apps.memories.services.store.snippets import MAX_LIMIT, find_code
from apps.tenants.scope import tenant_transaction
from config.cli.memory.finding import find_id, short
from config.cli.memory.listing import cut
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import choose_agent, tenant_option


@click.group()
def code() -> None:
    """The code store: fenced code from conversations and messages, each piece once. ID is an id, or its last characters."""


@code.command("list")
@click.argument("agent")
@click.option("--about", help="Only what shares words with this text, best first.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, MAX_LIMIT), default=20, show_default=True, help="How many."
)
@tenant_option
@json_option
def list_code(agent: str, about: str | None, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """List the code that an agent keeps, the latest first.

    \b
    Example: arbor code list Vega --about "tide table"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        if about is None:
            found = list(CodeSnippet.objects.filter(agent_id=chosen.id)[:limit])
        else:
            found = find_code(agent_id=chosen.id, text=about, limit=limit)
    people: Any = table(
        ("id", "language", "kept", "from", "about"),
        (
            (
                short(each.id),
                each.language or "-",
                ago(each.created_at),
                each.source,
                cut(each.title or each.code),
            )
            for each in found
        ),
    )
    told = {"agent": chosen.name, "code": [_line(each) for each in found]}
    show(told, as_json=as_json, people=people if found else f"{escape(chosen.name)} keeps no such code.")


@code.command("show")
@click.argument("agent")
@click.argument("code_id", metavar="ID")
@tenant_option
@json_option
def show_code(agent: str, code_id: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show a piece of code as it was said.

    \b
    Example: arbor code show Vega 0c5512aa
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = CodeSnippet.objects.get(id=find_id(chosen, CodeSnippet, code_id))
    show({"agent": chosen.name, **_line(found)}, as_json=as_json, people=escape(found.code))


def _line(each: CodeSnippet) -> dict[str, Any]:
    return {
        "id": each.id,
        "language": each.language,
        "title": each.title,
        "code": each.code,
        "source": each.source,
        "created_at": each.created_at,
    }
