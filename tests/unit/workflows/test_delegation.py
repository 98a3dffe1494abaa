"""The text that hands a step to an agent."""

from __future__ import annotations

from uuid import uuid4

from arbor.workflows.delegation import (
    delegated_goal,
    delegation_text,
    find_delegation,
    remembered_delegation,
)


def test_an_agent_remembers_a_step_without_the_request_to_answer() -> None:
    text = delegation_text(workflow="daily", step="look", step_id=uuid4(), task="Look at the tide.")
    assert remembered_delegation(text) == (
        "The workflow daily delegates its step look to you.\nThe task: Look at the tide."
    )
    assert remembered_delegation("Another event.") == "Another event."


def test_a_delegated_step_is_found_in_its_percept_and_its_goal() -> None:
    step_id, task = uuid4(), "Look at the tide."
    texts = (
        delegation_text(workflow="daily", step="look", step_id=step_id, task=task),
        delegated_goal(step_id=step_id, task=task),
    )
    assert [*map(find_delegation, texts)] == [(str(step_id), task)] * 2
    assert find_delegation("Another event.") is None
