"""Deliveries: retries, signatures and agent names."""

from __future__ import annotations

import hashlib
import hmac
import os
from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.contacts.delivery import (
    MAX_MENTIONS,
    MAX_TRIES,
    WAITS,
    decide_delivery_retry,
    mentioned_ids,
    possible_names,
)
from arbor.contacts.signing import SIGNING_SECRETS, new_secret, signature
from arbor.contacts.values import DELIVERY_TRANSITIONS, DeliveryStatus
from arbor.errors import SealBroken
from arbor.sealing import MasterKeys


def test_waits_grow_fourfold_from_a_minute_to_six_hours() -> None:
    minutes = [wait / timedelta(minutes=1) for wait in WAITS]
    assert minutes == [1, 4, 16, 64, 256, 360, 360]


@pytest.mark.parametrize(
    ("tries", "final", "status"),
    [
        (1, False, DeliveryStatus.PENDING),
        (7, False, DeliveryStatus.PENDING),
        (8, False, DeliveryStatus.FAILED),
        (9, False, DeliveryStatus.FAILED),
        (1, True, DeliveryStatus.FAILED),
    ],
)
def test_a_message_is_tried_eight_times_unless_a_failure_is_final(
    tries: int, final: bool, status: DeliveryStatus
) -> None:
    after = decide_delivery_retry(tries=tries, final=final)
    assert after.status is status
    assert (after.wait is None) is (status is DeliveryStatus.FAILED)
    assert after.status in DELIVERY_TRANSITIONS[DeliveryStatus.SENDING]


def test_every_try_but_the_last_has_its_wait() -> None:
    assert [decide_delivery_retry(tries=tries, final=False).wait for tries in range(1, MAX_TRIES)] == list(
        WAITS
    )


def test_a_sent_or_cancelled_message_cannot_change() -> None:
    assert DELIVERY_TRANSITIONS[DeliveryStatus.SENT] == DELIVERY_TRANSITIONS[DeliveryStatus.CANCELLED] == ()


def test_a_signature_is_what_a_receiver_computes() -> None:
    body = b'{"content": "hello"}'
    mac = hmac.new(b"secret", b"1700000000." + body, hashlib.sha256).hexdigest()
    assert signature(b"secret", at=1_700_000_000, body=body) == f"t=1700000000,v1={mac}"


def test_a_secret_opens_for_its_channel_alone() -> None:
    keys, tenant, channel, secret = MasterKeys(current=os.urandom(32)), uuid4(), uuid4(), new_secret()
    sealed = SIGNING_SECRETS.seal(secret, keys=keys, tenant_id=tenant, row_id=channel)
    assert secret not in str(sealed)
    opened = SIGNING_SECRETS.unseal(sealed, keys=keys, tenant_id=tenant, row_id=channel)
    assert opened.raw == secret.encode()
    for wrong in (
        {"keys": MasterKeys(current=os.urandom(32)), "tenant_id": tenant, "row_id": channel},
        {"keys": keys, "tenant_id": uuid4(), "row_id": channel},
        {"keys": keys, "tenant_id": tenant, "row_id": uuid4()},
    ):
        with pytest.raises(SealBroken, match="does not open"):
            SIGNING_SECRETS.unseal(sealed, **wrong)  # type: ignore[arg-type]


def test_no_two_secrets_are_the_same() -> None:
    assert len({new_secret() for _ in range(50)}) == 50


KNOWN = {"ada": "1", "old tom": "2", "vega": "3", "st. john": "4"}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("nobody", ()),
        ("@Ada, look", ("1",)),
        ("look, @ada.", ("1",)),
        ("@Old Tom knows", ("2",)),
        ("(@Vega) and @ada and @VEGA", ("3", "1")),
        ("@St. John said so", ("4",)),
        ("@Ada's note and @Old Tom's boat", ("1", "2")),
        ("mail ada@vega.example", ()),
        ("@@ada", ()),
        ("@stranger", ()),
    ],
)
def test_a_message_names_agents_by_their_names(text: str, ids: tuple[str, ...]) -> None:
    assert mentioned_ids(text, KNOWN) == ids


def test_a_message_mentions_five_agents_at_most() -> None:
    known = {f"a{n}": str(n) for n in range(20)}
    assert len(mentioned_ids(" ".join(f"@{name}" for name in known), known)) == MAX_MENTIONS


@given(st.lists(st.sampled_from(["@", " ", "ada", "@Öß", ".'-"]) | st.characters(), max_size=60).map("".join))
def test_any_text_can_be_searched_for_mentions(text: str) -> None:
    for names in possible_names(text):
        assert names
        assert all(name for name in names)
