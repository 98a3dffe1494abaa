"""The reference of the REST API: each operation with its role and its method."""

from __future__ import annotations

from scripts.api_reference import REFERENCE, reference
from scripts.client_calls import operations_of_api


def test_the_reference_is_up_to_date() -> None:
    text = reference()

    assert REFERENCE.read_text(encoding="utf-8") == text
    assert text.count("\n| `") == len(operations_of_api())


def test_the_reference_names_role_and_method() -> None:
    rows = reference().splitlines()
    (recall,) = (row for row in rows if "`POST /agents/{agent_id}/recall`" in row)
    assert recall.endswith("| viewer | `memories.recall` |")
    assert any("| viewer* |" in row for row in rows)
    assert any("| owner |" in row for row in rows)
