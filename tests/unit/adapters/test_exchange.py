"""What servers answer is read, whatever they take for JSON."""

from __future__ import annotations

import math
from typing import Any

import httpx
import pytest

from arbor.adapters.exchange import HttpReply


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", float(2**64)),
        (b"1e999", math.inf),
        (b'"\\ud800"', "\ud800"),
        (b"not JSON", None),
        (b'"\xff"', None),
    ],
)
def test_a_response_body_is_parsed_as_json(content: bytes, read: Any) -> None:
    value = HttpReply(status=200, headers=httpx.Headers(), content=content).json()
    assert (value, type(value)) == (read, type(read))
