"""JSON for heartbeats and the API."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from apps.tenants.encoding import to_json


@pytest.mark.parametrize("beside", ["plain", "half a pair: \ud800", 2**70])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_becomes_null(number: float, beside: Any) -> None:
    text = to_json({"number": number, "beside": beside})

    assert json.loads(text, parse_constant=pytest.fail) == {"number": None, "beside": beside}
