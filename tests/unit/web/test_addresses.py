"""Web addresses that agents may visit."""

from __future__ import annotations

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.web.addresses import AllowList, is_public


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("8.8.8.8", True),
        ("2606:4700:4700::1111", True),
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("168.63.129.16", False),
        ("168.63.129.17", True),
        ("192.88.99.1", False),
        ("3fff::1", False),
        ("3fff:fff:ffff::1", False),
        ("2001:20::1", False),
        ("2001:db8::1", False),
        ("::ffff:168.63.129.16", False),
        ("64:ff9b::a83f:8110", False),
        ("224.0.0.1", False),
        ("239.255.255.250", False),
        ("255.255.255.255", False),
        ("198.51.100.7", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::808:808", True),
        ("2002:7f00:1::", False),
        ("2002:a00:1::1", False),
        ("2002:808:808::1", True),
        # Teredo: 8.8.8.8 serves 8.8.4.4, then 10.0.0.1; then 127.0.0.1 serves 8.8.4.4.
        ("2001:0:808:808:0:ffff:f7f7:fbfb", True),
        ("2001:0:808:808:0:ffff:f5ff:fffe", False),
        ("2001:0:7f00:1:0:ffff:f7f7:fbfb", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b:1::808:808", False),
        ("fec0::1", False),
        ("feff::1", False),
        ("::7f00:1", False),
        ("::127.0.0.1", False),
        ("::8.8.8.8", False),
        ("::ffff:0:127.0.0.1", False),
        ("100::1", False),
        ("4000::1", False),
        ("localhost", False),
        ("2130706433", False),
        ("", False),
    ],
)
def test_only_the_public_network_is_public(address: str, public: bool) -> None:
    assert is_public(address) is public


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
def test_a_domain_is_allowed_with_its_subdomains_only(entries: list[str], host: str, permitted: bool) -> None:
    assert AllowList.of(entries).permits(host) is permitted


def test_an_empty_list_allows_no_domain() -> None:
    assert not AllowList.of([])
    assert AllowList.of(["*"])
    assert AllowList.of(["example.org"])


@pytest.mark.parametrize(
    "entry", ["https://example.org", "example.org/path", "example.org:80", "*.org", "a..b", "münchen.de"]
)
def test_an_invalid_domain_is_refused_with_an_example(entry: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"an allowed domain is like example\.org"):
        AllowList.of([entry])
