"""Listings of servers, names, texts, and the status of tools."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.errors import Invalid
from arbor.tools.names import action_of, check_server_name, is_tool_action, server_of
from arbor.tools.ports import DESCRIPTION_LENGTH, MAX_SKIPPED, Listing
from arbor.tools.status import ToolStatus, status_after_listing
from arbor.tools.texts import clean, one_line


def listed(name: str = "forecast", **changes: Any) -> dict[str, Any]:
    """Return a tool as a server lists it."""
    return {"name": name, "description": "Gives the forecast.", "inputSchema": {"type": "object"}, **changes}


def fingerprint(**changes: Any) -> str:
    """Return the fingerprint of a tool."""
    return Listing.of([listed(**changes)]).tools[0].fingerprint


def test_a_fingerprint_is_of_what_an_operator_judges() -> None:
    same = fingerprint()
    assert fingerprint() == same
    assert fingerprint(_meta={"time": 7}) == same
    changes: list[dict[str, Any]] = [
        {"description": "Gives the forecast!"},
        {"title": "Forecast"},
        {"inputSchema": {"type": "object", "properties": {"a": {"pattern": "x"}}}},
        {"annotations": {"destructiveHint": True}},
    ]
    assert same not in {fingerprint(**change) for change in changes}


def test_unusable_tools_are_skipped_with_a_reason() -> None:
    listing = Listing.of(
        [listed(), listed(), listed("a b"), listed("x" * 60), listed("bad", inputSchema="none")]
    )
    assert [tool.name for tool in listing.tools] == ["forecast"]
    assert [reason.partition(":")[0] for reason in listing.skipped] == [
        "forecast",
        "'a b'",
        f"'{'x' * 60}'",
        "bad",
    ]
    assert listing.skipped[2].endswith(
        "has 1 to 51 letters, digits, _, - and full stops, beginning with a letter, a digit or _"
    )


def test_many_unusable_tools_are_counted_not_listed() -> None:
    listing = Listing.of([listed(), *(listed(f"a {number}") for number in range(5_000))])
    assert listing.unusable == 5_000
    assert listing.skipped[0] == f"'a 0': {listing.skipped[1].partition(': ')[2]}"
    assert listing.skipped[-1] == f"{5_000 - MAX_SKIPPED:,} further tools are not listed here"
    assert len(listing.skipped) == MAX_SKIPPED + 1
    one_more = Listing.of([listed(f"a {number}") for number in range(MAX_SKIPPED + 1)])
    assert one_more.skipped[-1] == "1 further tool is not listed here"


def test_a_listing_that_is_read_in_part_says_so() -> None:
    listing = Listing.of([listed()], is_whole=False)
    assert listing.skipped == ("the server's list goes on; the tools after number 1 are not read",)
    assert (len(listing.tools), listing.unusable) == (1, 0)


def test_descriptions_are_cut_and_clean() -> None:
    (tool,) = Listing.of([listed(description="\u202eA\x00\x1b" + "b" * 5_000)]).tools
    assert tool.description.startswith("Ab")
    assert len(tool.description) < DESCRIPTION_LENGTH + 60
    assert "characters in all" in tool.description


def test_texts_lose_hidden_characters() -> None:
    assert clean("a\u200bb\nc\td\x07", 100) == "ab\nc\td"
    assert one_line("a\u2028b\n c", 100) == "a b c"


def test_values_other_than_texts_become_empty() -> None:
    assert clean(None, 100) == one_line(7, 100) == ""


@pytest.mark.parametrize("name", ["", "Weather", "9lives", "a.b", "a" * 25, "a b", "a\n"])
def test_a_server_name_must_fit_into_actions(name: str) -> None:
    with pytest.raises(Invalid, match="lower-case letters"):
        check_server_name(name)


def test_an_action_names_server_and_tool() -> None:
    action = action_of(check_server_name("my-weather"), "get.forecast")
    assert (action, server_of(action)) == ("mcp.my-weather.get.forecast", "my-weather")
    assert is_tool_action(action)
    assert not is_tool_action("recall")


@pytest.mark.parametrize(
    ("status", "is_listed", "same", "expected"),
    [
        (ToolStatus.OFF, True, False, ToolStatus.OFF),
        (ToolStatus.OFF, False, False, ToolStatus.OFF),
        (ToolStatus.ALLOWED, True, True, ToolStatus.ALLOWED),
        (ToolStatus.ALLOWED, True, False, ToolStatus.CHANGED),
        (ToolStatus.ALLOWED, False, False, ToolStatus.MISSING),
        (ToolStatus.CHANGED, True, True, ToolStatus.CHANGED),
        (ToolStatus.CHANGED, False, False, ToolStatus.MISSING),
        (ToolStatus.MISSING, True, True, ToolStatus.ALLOWED),
        (ToolStatus.MISSING, True, False, ToolStatus.CHANGED),
    ],
)
def test_a_listing_decides_the_status(
    status: ToolStatus, is_listed: bool, same: bool, expected: ToolStatus
) -> None:
    assert status_after_listing(status, listed=is_listed, same=same) is expected
