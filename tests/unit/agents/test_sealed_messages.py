"""Sealed messages: opened by their receiver alone, unchanged, and on their own route."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.identity import KeyPair, PrivateKey, generate_key_pair, sign
from arbor.agents.sealed_messages import MessageRoute, SealedMessage, open_message, seal_message
from arbor.errors import MessageRefused
from arbor.values import replace

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
VEGA, MAREN = generate_key_pair(), generate_key_pair()
ROUTE = MessageRoute(tenant_id="acme", message_id="m1", sender=VEGA.public_id, receiver=MAREN.public_id)
_KEYS = [X25519PrivateKey.generate() for _ in range(2)]
OWN, OTHER = (PrivateKey(raw=key.private_bytes_raw()) for key in _KEYS)


def seal(
    text: str = "The tide turns at six.", route: MessageRoute = ROUTE, *, sender: KeyPair = VEGA
) -> SealedMessage:
    return seal_message(
        text,
        route=route,
        at=NOON,
        sealed_for=1,
        exchange_public=_KEYS[0].public_key().public_bytes_raw(),
        signed_by=1,
        sign=lambda message: sign(sender.private, message),
    )


def open_sealed(message: SealedMessage, **changes: Any) -> str:
    values: dict[str, Any] = {
        "route": ROUTE,
        "signing_public": VEGA.public,
        "exchange_private": OWN,
        **changes,
    }
    return open_message(message, **values)


@given(st.text(max_size=400))
def test_a_message_opens_as_it_was_written(text: str) -> None:
    record = seal(text).to_json()
    assert open_sealed(SealedMessage.from_json(record)) == text


def test_a_record_reveals_neither_text_nor_repetition() -> None:
    first, second = seal(), seal()
    assert b"tide" not in first.box
    assert first.box != second.box


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_id": "other"},
        {"message_id": "m2"},
        {"sender": MAREN.public_id},
        {"receiver": VEGA.public_id},
        {"sender": MAREN.public_id, "receiver": VEGA.public_id},
    ],
    # Ids made of the random keys would differ between processes.
    ids=["tenant", "message", "sender", "receiver", "exchanged"],
)
def test_a_message_on_another_route_is_refused(changes: dict[str, str]) -> None:
    with pytest.raises(MessageRefused, match="not signed by"):
        open_sealed(seal(), route=replace(ROUTE, **changes))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"at": NOON + timedelta(microseconds=1)}, "not signed by"),
        ({"signed_by": 2}, "not signed by"),
        ({"sealed_for": 2}, "not signed by"),
        ({"signature": bytes(64)}, "not signed by"),
        ({"signature": b""}, "not signed by"),
        ({"box": b""}, "not signed by"),
        ({"v": 2}, "has version 2"),
    ],
    ids=str,
)
def test_a_message_with_a_changed_part_is_refused(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(MessageRefused, match=error):
        open_sealed(replace(seal(), **changes))


@given(st.data())
def test_a_message_with_a_flipped_bit_is_refused(data: st.DataObject) -> None:
    message = seal()
    part = data.draw(st.sampled_from(["box", "signature"]))
    raw = bytearray(getattr(message, part))
    place = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[place // 8] ^= 1 << place % 8
    changed: dict[str, Any] = {part: bytes(raw)}
    with pytest.raises(MessageRefused):
        open_sealed(replace(message, **changed))


def test_parts_of_two_messages_do_not_fit_together() -> None:
    first, second = seal("Yes."), seal("No.", replace(ROUTE, message_id="m2"))
    for mixed in (replace(first, box=second.box), replace(first, signature=second.signature)):
        with pytest.raises(MessageRefused):
            open_sealed(mixed)


def test_a_message_signed_anew_by_another_agent_does_not_open() -> None:
    message, route = seal(), replace(ROUTE, sender=MAREN.public_id)
    forged = seal("", route, sender=MAREN)
    with pytest.raises(MessageRefused):
        open_sealed(replace(forged, box=message.box), route=route, signing_public=MAREN.public)


def test_a_message_for_another_exchange_key_does_not_open() -> None:
    with pytest.raises(MessageRefused, match="does not open with the exchange key 1"):
        open_sealed(seal(), exchange_private=OTHER)


@pytest.mark.parametrize(
    "changes",
    [{"box": 1}, {"box": "?"}, {"at": "noon"}, {"more": 1}, {"v": "1"}, {"v": True}],
    ids=str,
)
def test_a_malformed_record_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(MessageRefused):
        SealedMessage.from_json(seal().to_json() | changes)


def test_an_empty_record_is_refused() -> None:
    with pytest.raises(MessageRefused, match="consists of v, at"):
        SealedMessage.from_json({})
