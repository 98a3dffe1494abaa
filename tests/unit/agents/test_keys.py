"""Chains of keys, and endorsements of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from arbor.agents.endorsement import (
    SYSTEM_AUTHORITY,
    Endorsement,
    EndorsementStatus,
    endorse,
    inactive_reason,
    require_transition,
    verify_statement,
)
from arbor.agents.identity import KeyPair, generate_key_pair
from arbor.agents.keys import (
    ChainKey,
    KeyChain,
    KeyPurpose,
    SigningKey,
    exchange_key,
    generate_exchange_pair,
    key_label,
    next_key,
)
from arbor.errors import IdentityRefused, TransitionIllegal

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
TENANT = "0199-acme"


def new_chain(pair: KeyPair, *, tenant: str = TENANT) -> KeyChain:
    first = ChainKey(number=1, public=pair.public)
    return KeyChain(public_id=pair.public_id, tenant_id=tenant, keys=(first,))


def authority(number: int = 1) -> SigningKey:
    return SigningKey.build(generate_key_pair().private, public_id=SYSTEM_AUTHORITY, number=number)


PAIR, OTHER = generate_key_pair(), generate_key_pair()
CHAIN = new_chain(PAIR)
AUTHORITY = authority()
PUBLIC = {1: AUTHORITY.public}
ENDORSED = endorse(CHAIN, authority=AUTHORITY, serial=1, at=NOW)


def rotated(chain: KeyChain, before: KeyPair, after: KeyPair) -> KeyChain:
    return replace(chain, keys=(*chain.keys, next_key(chain, after.public, private=before.private)))


def test_a_rotated_chain_verifies_under_the_same_id() -> None:
    chain = rotated(rotated(CHAIN, PAIR, OTHER), OTHER, generate_key_pair())
    chain.verify()
    assert chain.public_id == PAIR.public_id
    assert [key.number for key in chain.keys] == [1, 2, 3]


def faulty_chains() -> dict[str, KeyChain]:
    long = rotated(CHAIN, PAIR, OTHER)
    forged = rotated(CHAIN, OTHER, OTHER)
    return {
        "no key": replace(CHAIN, keys=()),
        "another agent's first key": replace(CHAIN, keys=new_chain(OTHER).keys),
        "a link that another key signed": forged,
        "a link without a signature": replace(
            CHAIN, keys=(CHAIN.keys[0], replace(long.keys[1], signature=b""))
        ),
        "a gap": replace(CHAIN, keys=(CHAIN.keys[0], replace(long.keys[1], number=3))),
        "another tenant's link": replace(long, tenant_id="0199-globex"),
        "another public key": replace(
            CHAIN, keys=(CHAIN.keys[0], replace(long.keys[1], public=generate_key_pair().public))
        ),
    }


@pytest.mark.parametrize("fault", faulty_chains())
def test_a_faulty_chain_is_refused(fault: str) -> None:
    with pytest.raises(IdentityRefused):
        faulty_chains()[fault].verify()


def test_an_exchange_key_is_signed_by_a_key_of_its_agent() -> None:
    public = generate_exchange_pair().public
    key = exchange_key(CHAIN, public, number=1, private=PAIR.private)
    CHAIN.verify_exchange(key)
    rotated(CHAIN, PAIR, OTHER).verify_exchange(key)
    for chain, forged in (
        (new_chain(OTHER), key),
        (CHAIN, replace(key, public=generate_exchange_pair().public)),
        (CHAIN, replace(key, number=2)),
        (CHAIN, exchange_key(CHAIN, public, number=1, private=OTHER.private)),
    ):
        with pytest.raises(IdentityRefused, match="is not signed"):
            chain.verify_exchange(forged)


def test_a_genuine_active_identity_is_accepted() -> None:
    verify_statement(CHAIN, ENDORSED, PUBLIC)
    assert ENDORSED.is_active


def suspension() -> Endorsement:
    return endorse(
        CHAIN, authority=AUTHORITY, serial=2, at=NOW, status=EndorsementStatus.SUSPENDED, reason="leaked"
    )


def false_identities() -> dict[str, tuple[KeyChain, Endorsement | None, dict[int, bytes]]]:
    suspended = suspension()
    return {
        "no endorsement": (CHAIN, None, PUBLIC),
        "another agent's": (new_chain(OTHER), ENDORSED, PUBLIC),
        "another tenant's": (replace(CHAIN, tenant_id="0199-globex"), ENDORSED, PUBLIC),
        "a former key's": (rotated(CHAIN, PAIR, OTHER), ENDORSED, PUBLIC),
        "another authority's": (CHAIN, endorse(CHAIN, authority=authority(), serial=1, at=NOW), PUBLIC),
        "an unknown authority's": (CHAIN, ENDORSED, {2: AUTHORITY.public}),
        "edited to active": (CHAIN, replace(suspended, status=EndorsementStatus.ACTIVE), PUBLIC),
        "edited serial": (CHAIN, replace(ENDORSED, serial=9), PUBLIC),
        "edited time": (CHAIN, replace(ENDORSED, at=NOW.replace(year=2027)), PUBLIC),
        "bad signature": (CHAIN, replace(ENDORSED, signature=b"0" * 64), PUBLIC),
        "short signature": (CHAIN, replace(ENDORSED, signature=b"0"), PUBLIC),
    }


@pytest.mark.parametrize("case", false_identities())
def test_a_false_identity_is_refused(case: str) -> None:
    with pytest.raises(IdentityRefused):
        verify_statement(*false_identities()[case])


def test_a_suspension_is_a_genuine_statement_with_its_reason() -> None:
    suspended = suspension()
    verify_statement(CHAIN, suspended, PUBLIC)
    assert not suspended.is_active
    assert inactive_reason(suspended) == "the identity is suspended: leaked"


def test_a_status_changes_as_the_table_allows() -> None:
    active, suspended, revoked = EndorsementStatus
    allowed = {(active, suspended), (active, revoked), (suspended, active), (suspended, revoked)}
    for before in EndorsementStatus:
        for after in EndorsementStatus:
            if (before, after) in allowed:
                require_transition(before, after, name="Ada")
                continue
            with pytest.raises(TransitionIllegal, match=f"the identity of Ada is {before}"):
                require_transition(before, after, name="Ada")


def test_a_signing_key_shows_no_private_half() -> None:
    key = SigningKey.build(PAIR.private, public_id=PAIR.public_id, number=1)
    assert repr(key) == f"SigningKey({PAIR.public_id!r}, number=1)"
    assert key.public == PAIR.public


def test_only_the_first_signing_key_has_an_empty_label() -> None:
    assert key_label(KeyPurpose.SIGNING, 1) == ""
    assert {key_label(KeyPurpose.SIGNING, 2), key_label(KeyPurpose.EXCHANGE, 1)} == {
        "signing/2",
        "exchange/1",
    }
