"""`arbor memory code`: the code that an agent keeps."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from apps.memories.models import CodeSnippet
from apps.memories.services.code import find_code
from config.cli.kit import Output
from config.cli.lookup import find_id
from config.cli.output import ago, cut, short, table
from config.cli.tenancy import ChosenAgent, in_agent_transaction


@in_agent_transaction
def list_code(agent: ChosenAgent, *, about: str | None, limit: int) -> Output:
    """List an agent's code snippets, the latest first."""
    if about is None:
        found = list(CodeSnippet.objects.filter(agent_id=agent.id)[:limit])
    else:
        found = find_code(agent_id=agent.id, text=about, limit=limit)
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
    told = {"agent": agent.name, "code": [_line(each) for each in found]}
    return Output(told, people=people if found else f"{escape(agent.name)} keeps no such code.")


@in_agent_transaction
def show_code(agent: ChosenAgent, *, code_id: str) -> Output:
    """Show a code snippet as it was said."""
    found = CodeSnippet.objects.get(id=find_id(agent, CodeSnippet, code_id))
    return Output({"agent": agent.name, **_line(found)}, people=escape(found.code))


def _line(each: CodeSnippet) -> dict[str, Any]:
    return {
        "id": each.id,
        "language": each.language,
        "title": each.title,
        "code": each.code,
        "source": each.source,
        "created_at": each.created_at,
    }
