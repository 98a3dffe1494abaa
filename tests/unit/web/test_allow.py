"""Which domains may be read: none, unless an operator says so."""

from __future__ import annotations

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.web.addresses import AllowList


@pytest.mark.parametrize(
    ("entries", "host", "permitted"),
    [
        ([], "example.org", False),
        (["*"], "anything.example", True),
        (["example.org"], "example.org", True),
        (["example.org"], "EXAMPLE.ORG.", True),
        (["example.org"], "www.example.org", True),
        (["example.org"], "badexample.org", False),
        (["example.org"], "example.org.evil.net", False),
        (["example.org"], "org", False),
        ([" Example.org ", ""], "docs.example.org", True),
        (["example.org"], "93.184.215.14", False),
        (["93.184.215.14"], "93.184.215.14", True),
        (["example.org"], "", False),
    ],
)
def test_a_domain_is_allowed_with_all_below_it_and_nothing_else(
    entries: list[str], host: str, permitted: bool
) -> None:
    assert AllowList.of(entries).permits(host) is permitted


def test_an_empty_list_is_no_web() -> None:
    assert not AllowList.of([])
    assert AllowList.of(["*"])
    assert AllowList.of(["example.org"])


@pytest.mark.parametrize(
    "entry", ["https://example.org", "example.org/path", "example.org:80", "*.org", "a..b"]
)
def test_what_is_no_domain_is_told(entry: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"an allowed domain is like example\.org"):
        AllowList.of([entry])
