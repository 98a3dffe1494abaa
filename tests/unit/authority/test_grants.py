"""Grants: match by path segment, subsets, and what their signatures cover."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.capabilities import CapabilityUri
from arbor.authority.constraints import Constraints, Rate, TimeWindow, constraints_from_input
from arbor.authority.grants import is_subset, matches, read_uri, resolve_resource, widening
from arbor.errors import CapabilityInvalid
from tests.support.authority import OTHER_KEY, SYSTEM, grant_of

READ = "arbor://fs/read"
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("grant", "resource", "covered"),
    [
        (f"{READ}/docs", f"{READ}/docs", True),
        (f"{READ}/docs", f"{READ}/docs/a", False),
        (f"{READ}/docs/*", f"{READ}/docs/a", True),
        (f"{READ}/docs/*", f"{READ}/docs/a/b", False),
        (f"{READ}/docs/*", f"{READ}/docs", False),
        (f"{READ}/docs/**", f"{READ}/docs/a/b", True),
        (f"{READ}/docs/**", f"{READ}/docs", True),
        # The beginning of a segment is not the segment.
        (f"{READ}/docs/**", f"{READ}/docs-secret/a", False),
        (f"{READ}/docs/*", f"{READ}/docsa", False),
        ("arbor://actions/execute/reach", "arbor://actions/execute/reach_out_user", False),
        ("arbor://actions/execute/recall", "arbor://actions/execute/recall/x", False),
        ("arbor://actions/execute/mcp.a.b", "arbor://actions/execute/mcp.a.bc", False),
        ("arbor://**", f"{READ}/docs", True),
        (f"{READ}/Docs", f"{READ}/docs", False),
    ],
)
def test_a_grant_covers_resources_by_segment(grant: str, resource: str, covered: bool) -> None:
    assert matches(read_uri(grant), read_uri(resource)) is covered


@pytest.mark.parametrize(
    "path", ["docs/../secret", "docs/./a", "docs//a", "docs/%2e%2e/a", "docs\\a", "docs/a*", "docs/**/a"]
)
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(CapabilityInvalid):
        read_uri(f"{READ}/{path}")


SEGMENTS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3)
URIS = st.builds(
    lambda path, wildcard: CapabilityUri(segments=("fs", "read", *path), wildcard=wildcard),
    SEGMENTS,
    st.sampled_from(["", "*", "**"]),
)
CONCRETE = st.builds(lambda path: CapabilityUri(segments=("fs", "read", *path), wildcard=""), SEGMENTS)


@given(child=URIS, parent=URIS, resource=CONCRETE)
def test_a_subset_covers_nothing_that_the_parent_does_not(
    child: CapabilityUri, parent: CapabilityUri, resource: CapabilityUri
) -> None:
    if is_subset(child, parent) and matches(child, resource):
        assert matches(parent, resource)


@given(uri=URIS)
def test_every_grant_is_a_subset_of_itself_and_of_all(uri: CapabilityUri) -> None:
    assert is_subset(uri, uri)
    assert is_subset(uri, read_uri("arbor://**"))


def test_a_resource_is_named_by_its_uri_or_its_action() -> None:
    assert resolve_resource(f" {READ}/docs ") == f"{READ}/docs"
    assert resolve_resource(" recall") == "arbor://actions/execute/recall"
    for empty in ("", "  "):
        with pytest.raises(CapabilityInvalid, match="name an action"):
            resolve_resource(empty)


def test_a_single_wildcard_does_not_contain_a_double_one() -> None:
    assert not is_subset(read_uri(f"{READ}/**"), read_uri(f"{READ}/*"))
    assert is_subset(read_uri(f"{READ}/*"), read_uri(f"{READ}/**"))


WINDOW = TimeWindow.parse("09:00-17:00 mon,tue,wed,thu,fri")
WIDE = Constraints(
    not_before=NOON,
    expires_at=NOON + timedelta(days=7),
    rate=Rate(uses=10, seconds=3600),
    max_uses=100,
    window=WINDOW,
)


@pytest.mark.parametrize(
    ("changes", "wider"),
    [
        ({}, ""),
        ({"max_uses": 5}, ""),
        ({"rate": Rate(uses=5, seconds=3600)}, ""),
        ({"window": TimeWindow.parse("10:00-12:00 mon")}, ""),
        ({"not_before": NOON - timedelta(hours=1)}, "begin before"),
        ({"not_before": None}, "begin before"),
        ({"expires_at": None}, "expire after"),
        ({"expires_at": NOON + timedelta(days=8)}, "expire after"),
        ({"max_uses": None}, "more than 100 uses"),
        ({"max_uses": 101}, "more than 100 uses"),
        ({"rate": None}, "rate"),
        # Ten each half hour are twenty an hour.
        ({"rate": Rate(uses=10, seconds=1800)}, "rate"),
        ({"window": None}, "outside"),
        ({"window": TimeWindow.parse("09:00-17:01 mon")}, "outside"),
        ({"window": TimeWindow.parse("10:00-12:00 sat")}, "outside"),
        ({"window": TimeWindow.parse("10:00-12:00 mon", zone="Europe/Berlin")}, "outside"),
    ],
)
def test_constraints_of_a_delegate_are_never_wider(changes: dict[str, Any], wider: str) -> None:
    fault = replace(WIDE, **changes).widening(WIDE)
    assert (wider in fault) if wider else not fault


@pytest.mark.parametrize(
    ("changes", "wider"),
    [
        ({}, ""),
        ({"resource": read_uri(f"{READ}/docs/a")}, ""),
        ({"resource": read_uri(f"{READ}/**")}, "is not within"),
        ({"depth": 2}, "delegated further than cap_"),
        ({"depth": 2}, "allows: 2 levels below it"),
        ({"tenant": "another"}, "leave the tenant"),
        ({"constraints": Constraints(expires_at=NOON)}, ""),
    ],
)
def test_a_delegate_never_exceeds_its_grant(changes: dict[str, Any], wider: str) -> None:
    parent = grant_of(f"{READ}/docs/*", depth=2)
    fault = widening(replace(parent, **({"depth": 1} | changes)), parent)
    assert (wider in fault) if wider else not fault


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "cap_other"},
        {"tenant": "other"},
        {"agent": "*"},
        {"issuer": "authority:2"},
        {"resource": read_uri("arbor://**")},
        {"constraints": Constraints(max_uses=2)},
        {"parent_id": "cap_other"},
        {"depth": 10},
        {"granted_at": NOON},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_signature_covers_each_field(changes: dict[str, Any]) -> None:
    grant = grant_of(f"{READ}/docs")
    assert grant.is_signed_by(SYSTEM.public)
    assert not grant.is_signed_by(OTHER_KEY.public)
    assert not replace(grant, **changes).is_signed_by(SYSTEM.public)


@pytest.mark.parametrize("signature", ["", "00", "zz", "ab" * 64])
def test_a_damaged_signature_is_not_accepted(signature: str) -> None:
    assert not replace(grant_of(READ), signature=signature).is_signed_by(SYSTEM.public)


@pytest.mark.parametrize(
    ("window", "at", "is_open"),
    [
        ("09:00-17:00", NOON, True),
        ("09:00-12:00", NOON, False),
        ("22:00-06:00", NOON.replace(hour=23), True),
        ("22:00-06:00", NOON.replace(hour=5), True),
        ("22:00-06:00 sun", NOON.replace(hour=5), True),
        ("22:00-06:00 mon", NOON.replace(hour=5), False),
        ("09:00-17:00 sat,sun", NOON, False),
        ("09:00-17:00 sat, Monday", NOON, True),
    ],
)
def test_a_window_is_open_in_its_hours(window: str, at: datetime, is_open: bool) -> None:
    assert TimeWindow.parse(window).is_open(at) is is_open


@pytest.mark.parametrize(
    "text",
    [
        *("", "9-17", "09:00", "09:00-09:00", "09:00-25:00", "09:00-17:00 someday"),
        # A range would be read as its first day.
        *("09:00-17:00 mon-fri", "09:00-17:00 mon tue", "09:00-17:00 mo"),
        # Neither seconds nor an offset would be stored.
        *("09:00-09:00:30", "09:00-17:00+02:00"),
    ],
)
def test_a_window_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(CapabilityInvalid):
        TimeWindow.parse(text)


def test_constraints_survive_the_round_trip() -> None:
    assert Constraints.from_json(WIDE.to_json()) == WIDE
    assert Constraints.from_json(None) == Constraints.from_json({}) == Constraints()


@pytest.mark.parametrize(
    "stored", [{"unknown": 1}, {"rate": [0, 1]}, {"max_uses": 0}, {"expires_at": "soon"}, {"window": [1]}]
)
def test_damaged_constraints_are_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(CapabilityInvalid):
        Constraints.from_json(stored)


def test_a_rate_without_uses_or_period_is_refused() -> None:
    # Otherwise the grant would have no rate at all.
    for uses, seconds in ((5, 0), (0, 60), (5, None)):
        with pytest.raises(CapabilityInvalid, match="rate"):
            constraints_from_input(rate_uses=uses, rate_seconds=seconds)


def test_a_time_zone_without_hours_is_refused() -> None:
    with pytest.raises(CapabilityInvalid, match="got Europe/Berlin without hours"):
        constraints_from_input(hours=" ", time_zone="Europe/Berlin")
