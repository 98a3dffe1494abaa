"""Code snippets of agents, stored once for each agent."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.memories.models import CodeSnippet
from apps.memories.services.store.snippets import SaidTexts, store_code
from apps.tenants.scope import tenant_transaction

ADD = "```python\ndef add(a, b):\n    return a + b\n```"
LIST = "```sh\nls -la | sort | head\n```"


def test_code_of_several_agents_takes_one_statement(
    mind: Agent, other_mind: Agent, statements: list[str]
) -> None:
    texts = [
        SaidTexts(agent_id=mind.id, texts=[f"Try\n{ADD}\nor\n{LIST}", ADD], source="heartbeat:1"),
        SaidTexts(agent_id=other_mind.id, texts=["Nothing here.", ADD], source="heartbeat:2" * 40),
    ]
    with tenant_transaction(mind.tenant_id):
        assert store_code([SaidTexts(agent_id=mind.id, texts=["Nothing here."], source="test")]) == 0
        assert statements == []
        assert store_code(texts) == 4
        assert len(statements) == 1
        assert store_code(texts) == 4
        rows = CodeSnippet.objects.order_by("agent_id", "language")
        stored = {(row.agent_id, row.language, len(row.source)) for row in rows}
    assert stored == {(mind.id, "python", 11), (mind.id, "sh", 11), (other_mind.id, "python", 200)}
    assert len(rows) == 3
