"""`arbor memory code`: the code that an agent keeps."""

from __future__ import annotations

from rich.markup import escape

from apps.memories.models import CodeSnippet
from apps.memories.services.store.snippets import find_code
from config.cli.columns import OutputColumn, facts, listing
from config.cli.kit import Output
from config.cli.lookup import find_id
from config.cli.output import ago, cut, short
from config.cli.tenancy import ChosenAgent, in_agent_transaction

SNIPPET = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("language", "language", cell=lambda language: language or "-"),
    OutputColumn("created_at", "saved", cell=ago),
    OutputColumn("source", "from"),
    OutputColumn(head="about", value=lambda snippet: cut(snippet.title or snippet.code)),
    OutputColumn("title"),
    OutputColumn("code"),
)


@in_agent_transaction
def list_code(agent: ChosenAgent, *, about: str | None, limit: int) -> Output:
    """List an agent's code snippets, the latest first."""
    if about is None:
        snippets = list(CodeSnippet.objects.filter(agent_id=agent.id)[:limit])
    else:
        snippets = find_code(agent_id=agent.id, text=about, limit=limit)
    return listing(
        "code",
        snippets,
        SNIPPET,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has no such code.",
    )


@in_agent_transaction
def show_code(agent: ChosenAgent, *, code_id: str) -> Output:
    """Show a code snippet as it was said."""
    found = CodeSnippet.objects.get(id=find_id(agent, CodeSnippet, code_id))
    return Output({"agent": agent.name, **facts(found, SNIPPET)}, people=escape(found.code))
