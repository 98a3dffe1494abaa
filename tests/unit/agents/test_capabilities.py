"""The grammar of `arbor://` URIs, which refuses what it does not know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.capabilities import KNOWN_PREFIXES, CapabilityUri
from arbor.errors import CapabilityInvalid


@pytest.mark.parametrize(
    ("text", "segments", "wildcard"),
    [
        ("arbor://**", (), "**"),
        ("arbor://memory/**", ("memory",), "**"),
        ("arbor://memory/*", ("memory",), "*"),
        ("arbor://shell/safe", ("shell", "safe"), ""),
        ("arbor://fs/read/**", ("fs", "read"), "**"),
        ("arbor://fs/read/srv/Data-1/*", ("fs", "read", "srv", "Data-1"), "*"),
        ("arbor://actions/execute/file.read", ("actions", "execute", "file.read"), ""),
        ("arbor://consensus/force_merge", ("consensus", "force_merge"), ""),
        ("arbor://comms/anything_at_all/x", ("comms", "anything_at_all", "x"), ""),
    ],
)
def test_a_uri_of_the_grammar_is_read(text: str, segments: tuple[str, ...], wildcard: str) -> None:
    uri = CapabilityUri.parse(text)
    assert (uri.segments, uri.wildcard) == (segments, wildcard)
    assert str(uri) == text


def test_one_trailing_slash_is_dropped() -> None:
    assert str(CapabilityUri.parse("arbor://fs/read/")) == "arbor://fs/read"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with arbor://"),
        ("fs/read", "begins with arbor://"),
        ("ARBOR://fs/read", "begins with arbor://"),
        (" arbor://fs/read", "begins with arbor://"),
        ("arbor://", "empty segment"),
        ("arbor://*", "too short"),
        ("arbor://fs", "too short"),
        ("arbor://fs/", "too short"),
        ("arbor://fs/read//", "empty segment"),
        ("arbor://fs//read", "empty segment"),
        ("arbor:///fs/read", "empty segment"),
        ("arbor://fs/read/../etc", "cannot be '..'"),
        ("arbor://fs/read/..", "cannot be '..'"),
        ("arbor://fs/read/./a", "cannot be '.'"),
        ("arbor://fs/read/%2e%2e/etc", "no white space, control character, %"),
        ("arbor://fs/read/..\\etc", "backslash"),
        ("arbor://fs/read/a b", "white space"),
        ("arbor://fs/read/a\tb", "white space"),
        ("arbor://fs/read/a\x00", "control character"),
        ("arbor://fs/read/a\n", "white space"),
        ("arbor://fs/**/secret", "only the last"),
        ("arbor://fs/*/secret", "only the last"),
        ("arbor://**/fs", "only the last"),
        ("arbor://fs/read/a*", "whole segment"),
        ("arbor://fs/read/***", "whole segment"),
        ("arbor://Fs/read", "lower-case"),
        ("arbor://fs/Read", "lower-case"),
        ("arbor://2fs/read", "lower-case"),
        ("arbor://fs/read.all", "lower-case"),
        ("arbor://fsx/read", "unknown domain 'fsx'; known: actions, agent"),
        ("arbor://unheard_of/**", "unknown domain"),
        ("arbor://fs/reader", "unknown operation 'reader' of fs; known: read, write"),
        ("arbor://fs/read/" + "a" * 500, "at most 500"),
    ],
)
def test_a_uri_outside_the_grammar_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(CapabilityInvalid) as caught:
        CapabilityUri.parse(text)
    assert reason in str(caught.value)


SEGMENTS = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S"], exclude_characters="/*%\\"), min_size=1
)
KNOWN = st.sampled_from(
    [
        (domain, operation.replace("*", "x"))
        for domain, operations in KNOWN_PREFIXES.items()
        for operation in operations
    ]
)


@given(prefix=KNOWN, rest=st.lists(SEGMENTS, max_size=4), wildcard=st.sampled_from(["", "/*", "/**"]))
def test_a_parsed_uri_is_written_back_unchanged(
    prefix: tuple[str, str], rest: list[str], wildcard: str
) -> None:
    text = "arbor://" + "/".join([*prefix, *rest]) + wildcard
    if {".", ".."} & set(rest):
        with pytest.raises(CapabilityInvalid):
            CapabilityUri.parse(text)
    else:
        assert str(CapabilityUri.parse(text)) == text


PARTS = st.sampled_from(["/", "/a", ".", "*", "%2e", "\\"]) | st.text(max_size=2)


@given(prefix=st.just(()) | KNOWN, tail=st.lists(PARTS, max_size=6).map("".join))
def test_any_text_is_a_uri_or_capability_invalid(prefix: tuple[str, ...], tail: str) -> None:
    try:
        uri = CapabilityUri.parse("arbor://" + "/".join(prefix) + tail)
    except CapabilityInvalid:
        return
    assert CapabilityUri.parse(str(uri)) == uri
    assert ".." not in uri.segments
