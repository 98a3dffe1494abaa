"""Keys of an agent: ids, signatures and sealed private keys."""

from __future__ import annotations

import base64
import hashlib
import pickle
import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arbor.agents.identity import (
    KeyPair,
    PrivateKey,
    generate_key_pair,
    open_private_key,
    public_id,
    seal_private_key,
    sign,
    verify,
)
from arbor.errors import SealBroken
from arbor.sealing import MasterKeys, SealedRecord

MASTER = MasterKeys(current=bytes(range(32)))
AGENT = "agent_" + "ab" * 32
TENANT = "0198c0de-0000-7000-8000-000000000001"
KEYS = st.binary(min_size=32, max_size=32)


def sealed_for(private: PrivateKey) -> SealedRecord:
    return seal_private_key(private, keys=MASTER, agent_public_id=AGENT, tenant_id=TENANT)


def open_sealed(sealed: SealedRecord, **other: object) -> PrivateKey:
    bound = {"keys": MASTER, "agent_public_id": AGENT, "tenant_id": TENANT} | other
    return open_private_key(sealed, **bound)  # type: ignore[arg-type]


def test_the_id_is_the_hash_of_the_public_key() -> None:
    pair = generate_key_pair()
    assert pair.public_id == public_id(pair.public) == "agent_" + hashlib.sha256(pair.public).hexdigest()
    assert len(pair.public_id) == 70
    assert generate_key_pair().public_id != pair.public_id


def test_a_signature_verifies_only_for_its_key_and_message() -> None:
    pair, other = generate_key_pair(), generate_key_pair()
    signature = sign(pair.private, b"grant")
    assert verify(pair.public, b"grant", signature)
    assert not verify(pair.public, b"grant!", signature)
    assert not verify(other.public, b"grant", signature)
    assert not verify(pair.public, b"grant", signature[:-1] + bytes([signature[-1] ^ 1]))


def test_a_private_key_shows_in_no_representation_and_does_not_pickle() -> None:
    pair = generate_key_pair()
    shown = f"{pair!r} {pair} {pair.private!r} {pair.private}"
    for spelling in (
        repr(pair.private.raw),
        pair.private.raw.hex(),
        base64.b64encode(pair.private.raw).decode(),
    ):
        assert spelling not in shown
    with pytest.raises(TypeError, match="does not leave the process"):
        pickle.dumps(pair)


def test_a_private_key_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes, got 31"):
        PrivateKey(raw=bytes(31))


@given(raw=KEYS, master=KEYS, agent=st.text(max_size=80), tenant=st.text(max_size=40))
def test_a_sealed_key_opens_again(raw: bytes, master: bytes, agent: str, tenant: str) -> None:
    bound = {"keys": MasterKeys(current=master), "agent_public_id": agent, "tenant_id": tenant}
    sealed = seal_private_key(PrivateKey(raw=raw), **bound)  # type: ignore[arg-type]
    stored = SealedRecord.from_json(sealed.to_json())
    assert open_private_key(stored, **bound).raw == raw  # type: ignore[arg-type]
    assert raw not in sealed.ct


def test_two_seals_of_one_key_differ() -> None:
    private = generate_key_pair().private
    assert sealed_for(private) != sealed_for(private)


def test_changing_any_bit_of_any_part_breaks_the_seal() -> None:
    sealed = sealed_for(generate_key_pair().private)
    parts = {"ct": sealed.ct, "iv": sealed.iv, "tag": sealed.tag}
    for part, raw in parts.items():
        for position in range(len(raw)):
            for bit in range(8):
                changed = bytearray(raw)
                changed[position] ^= 1 << bit
                tampered = SealedRecord(v=sealed.v, k=sealed.k, **(parts | {part: bytes(changed)}))
                with pytest.raises(SealBroken):
                    open_sealed(tampered)


@settings(max_examples=300)
@given(data=st.data())
def test_changing_any_character_of_the_stored_record_breaks_the_seal(data: st.DataObject) -> None:
    record = sealed_for(generate_key_pair().private).to_json()
    part = data.draw(st.sampled_from(["ct", "iv", "tag"]))
    text = str(record[part])
    position = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(
        st.characters(min_codepoint=32, max_codepoint=126).filter(lambda char: char != text[position])
    )
    changed = record | {part: text[:position] + other + text[position + 1 :]}
    with pytest.raises(SealBroken):
        open_sealed(SealedRecord.from_json(changed))


@pytest.mark.parametrize(
    "other",
    [
        {"keys": MasterKeys(current=bytes(32))},
        {"agent_public_id": "agent_" + "ac" * 32},
        {"tenant_id": "0198c0de-0000-7000-8000-000000000002"},
        # The same characters, cut at another place.
        {"agent_public_id": AGENT + TENANT[:1], "tenant_id": TENANT[1:]},
    ],
)
def test_a_sealed_key_opens_for_no_other_master_key_agent_or_tenant(other: dict[str, object]) -> None:
    sealed = sealed_for(generate_key_pair().private)
    with pytest.raises(SealBroken, match="does not open"):
        open_sealed(sealed, **other)


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"v": "1"},
        {"v": True},
        {"ct": None},
        {"iv": 7},
        {"tag": ""},
        {"ct": "A" * 400},
        {"extra": "x"},
        {"k": "00000000"},
        {"k": 7},
    ],
)
def test_a_damaged_record_is_a_broken_seal(change: dict[str, object]) -> None:
    record = sealed_for(generate_key_pair().private).to_json()
    with pytest.raises(SealBroken):
        open_sealed(SealedRecord.from_json(record | change))


def test_a_record_that_lacks_a_part_is_a_broken_seal() -> None:
    with pytest.raises(SealBroken, match="v, k, ct, iv and tag"):
        SealedRecord.from_json({"v": 1, "ct": ""})


def test_a_key_pair_compares_by_its_keys() -> None:
    raw = secrets.token_bytes(32)
    assert PrivateKey(raw=raw) == PrivateKey(raw=raw)
    assert KeyPair(public=b"p", private=PrivateKey(raw=raw)) == KeyPair(
        public=b"p", private=PrivateKey(raw=raw)
    )
