"""Parameters of actions on others, as models write them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from arbor.heartbeat.params.outward import StartWorkflowParams


@pytest.mark.parametrize("written", ["[" * 100_000, '{"a":' * 100_000, "{", "1" * 5_000, r'{"a": "\ud800"}'])
def test_an_input_of_a_workflow_that_is_no_object_is_invalid(written: str) -> None:
    with pytest.raises(ValidationError):
        StartWorkflowParams(workflow="report", input=written)
