"""The text that hands a step to an agent."""

from __future__ import annotations

from uuid import uuid4

from arbor.workflows.delegation import delegation_text, remembered_delegation


def test_an_agent_remembers_a_step_without_the_request_to_answer() -> None:
    text = delegation_text(workflow="daily", step="look", step_id=uuid4(), task="Look at the tide.")
    assert remembered_delegation(text) == (
        "The workflow daily delegates its step look to you.\nThe task: Look at the tide."
    )
    assert remembered_delegation("Another event.") == "Another event."
