"""Authorization of signed requests: attacks are denied with their reason, uses are limited, checks are cached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from arbor.authority import authorization, requests
from arbor.authority.authorization import (
    AgentAuthority,
    AgentGrants,
    Authorization,
    GrantUses,
    authorize,
    explain,
    with_trust,
)
from arbor.authority.constraints import Constraints, Rate, TimeWindow
from arbor.authority.grants import ALL_AGENTS, Capability
from arbor.authority.modes import TrustMode, TrustProfile, TrustRule
from arbor.authority.requests import ActionRequest, KeySigner, Nonce, SignedRequests, body_hash
from tests.support.authority import (
    AGENT_KEY,
    OTHER_ID,
    OTHER_KEY,
    PUBLIC_ID,
    SIGNER,
    authority_of,
    grant_of,
)

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)  # a Monday
RECALL, EVERY_ACTION = "arbor://actions/execute/recall", "arbor://actions/execute/*"
PARAMS = {"query": "ferries", "limit": 5}
NONCE = Nonce(heartbeat_id=UUID(int=3), round_trip=1, index=0)
GRANT = grant_of(RECALL)


def request_of(**changes: Any) -> ActionRequest:
    values: dict[str, Any] = {
        "resource": RECALL,
        "agent": PUBLIC_ID,
        "at": NOW,
        "body_hash": body_hash(PARAMS),
        "nonce": NONCE,
    }
    return ActionRequest(**(values | changes))


def signed_of(**changes: Any) -> SignedRequests:
    return SIGNER.sign_requests([request_of(**changes)])


def check(
    signed: SignedRequests | None, authority: AgentAuthority | None = None, **changes: Any
) -> Authorization:
    values: dict[str, Any] = {"nonce": NONCE, "resource": RECALL, "params": PARAMS, "now": NOW} | changes
    return authorize(signed, authority=authority or authority_of(GRANT), **values)


def test_a_signed_request_with_a_grant_is_authorized() -> None:
    assert check(signed_of()) == Authorization(granted=True, capability_id=GRANT.id)


def test_each_request_of_a_turn_is_checked_under_one_signature() -> None:
    second = replace(NONCE, index=1)
    signed = SIGNER.sign_requests([request_of(), request_of(nonce=second, body_hash=body_hash({}))])
    assert check(signed).granted
    assert check(signed, nonce=second, params={}).granted
    assert check(signed, nonce=second).code == "body_changed"
    dropped = replace(signed, requests=signed.requests[:1])
    assert check(dropped).code == "bad_signature"


def _by_another_key() -> SignedRequests:
    return KeySigner(lambda: OTHER_KEY).sign_requests([request_of()])


@pytest.mark.parametrize(
    ("forge", "code"),
    [
        (lambda: None, "bad_signature"),
        (_by_another_key, "bad_signature"),
        (lambda: replace(signed_of(), signature="00" * 64), "bad_signature"),
        (lambda: replace(signed_of(), signature="not hexadecimal"), "bad_signature"),
        (lambda: replace(signed_of(), key_number=2), "bad_signature"),
        (lambda: replace(signed_of(), requests=(request_of(body_hash=body_hash({})),)), "bad_signature"),
        (lambda: signed_of(agent=OTHER_ID), "other_agent"),
        (lambda: signed_of(resource="arbor://actions/execute/rest"), "body_changed"),
        (lambda: signed_of(body_hash=body_hash({"query": "keys"})), "body_changed"),
        (lambda: signed_of(nonce=replace(NONCE, heartbeat_id=UUID(int=4))), "replayed"),
        (lambda: signed_of(nonce=replace(NONCE, round_trip=2)), "replayed"),
        (lambda: signed_of(nonce=replace(NONCE, index=1)), "bad_signature"),
        (lambda: signed_of(at=NOW - timedelta(days=2)), "replayed"),
        (lambda: signed_of(at=NOW + timedelta(hours=1)), "replayed"),
    ],
)
def test_a_forged_or_replayed_request_is_denied(
    forge: Callable[[], SignedRequests | None], code: str
) -> None:
    denial = check(forge())
    assert (denial.granted, denial.code, denial.capability_id) == (False, code, "")
    assert denial.reason


def _delegated(**changes: Any) -> Capability:
    """Return a grant delegated from one to another agent."""
    parent = grant_of("arbor://actions/execute/*", id="cap_parent", agent=OTHER_ID, depth=1)
    values: dict[str, Any] = {"parent_id": "cap_parent", "depth": 0, "ancestors": (parent,)} | changes
    return grant_of(values.pop("resource", RECALL), **values)


@pytest.mark.parametrize(
    ("grant", "code"),
    [
        (grant_of("arbor://actions/execute/rest"), "no_grant"),
        (grant_of("arbor://actions/execute/recal"), "no_grant"),
        (grant_of("arbor://actions/execute/recall/*"), "no_grant"),
        (grant_of(RECALL, by=OTHER_KEY), "bad_signature"),
        (grant_of(RECALL, by=AGENT_KEY), "bad_signature"),
        (replace(GRANT, signature=""), "bad_signature"),
        (grant_of(RECALL, issuer="authority:9"), "bad_signature"),
        (replace(grant_of("arbor://actions/execute/rest"), resource=GRANT.resource), "bad_signature"),
        (replace(GRANT, constraints=Constraints(max_uses=99)), "bad_signature"),
        (grant_of(RECALL, agent=OTHER_ID), "other_agent"),
        (grant_of(RECALL, tenant="another tenant"), "other_agent"),
        (replace(GRANT, revoked_at=NOW), "revoked"),
        (grant_of(RECALL, constraints=Constraints(expires_at=NOW)), "expired"),
        (grant_of(RECALL, constraints=Constraints(not_before=NOW + timedelta(seconds=1))), "not_yet"),
        (
            grant_of(RECALL, constraints=Constraints(window=TimeWindow.parse("13:00-14:00"))),
            "outside_window",
        ),
        (_delegated(resource="arbor://**"), "widened"),
        (_delegated(depth=1), "widened"),
        (_delegated(ancestors=()), "widened"),
        (_delegated(parent_id="cap_other"), "widened"),
        (_delegated(ancestors=(grant_of("arbor://**", id="cap_parent", by=AGENT_KEY),)), "bad_signature"),
        (
            _delegated(ancestors=(grant_of("arbor://**", id="cap_parent", tenant="other", depth=1),)),
            "widened",
        ),
    ],
)
def test_a_grant_that_is_not_in_force_denies(grant: Capability, code: str) -> None:
    denial = check(signed_of(), authority_of(grant))
    assert (denial.granted, denial.code) == (False, code)
    assert denial.reason


def test_a_delegated_grant_authorizes_its_holder() -> None:
    assert check(signed_of(), authority_of(_delegated())).granted


def test_a_grant_to_all_agents_authorizes_each() -> None:
    assert check(signed_of(), authority_of(grant_of(RECALL, agent=ALL_AGENTS))).granted


def test_an_agent_without_endorsement_is_denied() -> None:
    authority = replace(authority_of(GRANT), identity_fault="the identity is suspended: odd acts")
    denial = check(signed_of(), authority)
    assert (denial.code, denial.reason) == ("not_endorsed", "the identity is suspended: odd acts")
    assert explain(RECALL, authority=authority, now=NOW).code == "not_endorsed"
    assert not authority.permits(RECALL, now=NOW)


@pytest.mark.parametrize(
    ("limits", "used", "code"),
    [
        (Constraints(max_uses=2), GrantUses(total=1, recent=1), None),
        (Constraints(max_uses=2), GrantUses(total=2), "used_up"),
        (Constraints(rate=Rate(uses=3, seconds=60)), GrantUses(total=9, recent=2), None),
        (Constraints(rate=Rate(uses=3, seconds=60)), GrantUses(total=9, recent=3), "rate"),
    ],
)
def test_uses_are_limited(limits: Constraints, used: GrantUses, code: str | None) -> None:
    grant = grant_of(RECALL, constraints=limits)
    found = check(signed_of(), replace(authority_of(grant), uses={grant.id: used}))
    assert (found.code, found.counted) == (code, code is None)


def test_uses_that_are_not_stored_yet_count() -> None:
    grant = grant_of(RECALL, constraints=Constraints(max_uses=2))
    authority = authority_of(grant).with_uses([grant.id])
    assert check(signed_of(), authority).granted
    assert check(signed_of(), authority.with_uses([grant.id])).code == "used_up"


def test_another_grant_is_tried_when_one_is_not_in_force() -> None:
    expired = grant_of(RECALL, id="cap_1", constraints=Constraints(expires_at=NOW))
    wide = grant_of("arbor://actions/**", id="cap_2")
    found = check(signed_of(), authority_of(wide, expired))
    assert (found.capability_id, [grant.capability_id for grant in found.tried]) == ("cap_2", ["cap_1"])


def test_an_explanation_lists_all_grants_that_were_tried() -> None:
    revoked = replace(GRANT, id="cap_1", revoked_at=NOW, revoked_reason="no longer needed")
    expired = grant_of(RECALL, id="cap_2", constraints=Constraints(expires_at=NOW))
    denial = explain(RECALL, authority=authority_of(revoked, expired), now=NOW)
    assert [(grant.capability_id, grant.code) for grant in denial.tried] == [
        ("cap_1", "revoked"),
        ("cap_2", "expired"),
    ]
    assert denial.code == "expired"
    assert "no longer needed" in denial.tried[0].reason


@pytest.mark.parametrize("resource", ["arbor://actions/execute/../x", "http://x", "arbor://unknown/x"])
def test_a_resource_outside_the_grammar_is_denied(resource: str) -> None:
    authority = authority_of(grant_of("arbor://**"))
    assert explain(resource, authority=authority, now=NOW).code == "no_grant"
    assert not authority.permits(resource, now=NOW)


def test_the_body_hash_ignores_the_order_of_names() -> None:
    assert body_hash({"a": 1, "b": [1.5]}) == body_hash({"b": [1.5], "a": 1})
    assert body_hash({"a": 1}) != body_hash({"a": "1"})


@pytest.mark.parametrize(
    ("mode", "offered", "granted", "code", "reason"),
    [
        (TrustMode.BLOCK, False, False, "blocked", "a person blocks it"),
        (TrustMode.ASK, True, True, None, "a person is asked first"),
        (TrustMode.ALLOW, True, True, None, ""),
    ],
)
def test_trust_modes_limit_what_a_grant_permits(
    mode: TrustMode, offered: bool, granted: bool, code: str | None, reason: str
) -> None:
    profile = TrustProfile(rules=(TrustRule(prefix=RECALL, mode=mode),))
    authority = replace(authority_of(GRANT), modes=profile)
    assert authority.permits(RECALL, now=NOW) is offered
    found = with_trust(explain(RECALL, authority=authority, now=NOW), RECALL, profile)
    assert (found.granted, found.code) == (granted, code)
    assert found.reason.startswith(reason)


def test_own_signatures_are_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_is_signature", lambda *_: pytest.fail("checked again"))
    signed = signed_of()

    assert signed.is_signed_by(AGENT_KEY.public)


def test_the_cache_of_own_signatures_is_bounded() -> None:
    for round_trip in range(requests._SIGNATURES_CACHED + 1):
        signed_of(nonce=replace(NONCE, round_trip=round_trip))

    assert len(requests._made) == requests._SIGNATURES_CACHED


def test_an_own_signature_is_valid_for_its_key_and_body_only() -> None:
    signed = signed_of()

    assert not signed.is_signed_by(OTHER_KEY.public)
    assert not replace(signed, key_number=2).is_signed_by(AGENT_KEY.public)


def test_grants_cache_a_bounded_number_of_resources() -> None:
    grants = AgentGrants((grant_of(EVERY_ACTION), grant_of(RECALL)))

    for number in range(2 * authorization._RESOURCES_CACHED):
        assert len(grants.covering(f"arbor://actions/execute/a{number}")) == 1
    assert grants.covering(RECALL) == grants.covering(RECALL) == (grants[1], grants[0])
    assert len(grants._found) == authorization._RESOURCES_CACHED
