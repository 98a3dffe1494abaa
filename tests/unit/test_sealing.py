"""Master keys, the secrets derived from them, and records sealed under one of two open keys."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import ConfigurationInvalid, SealBroken
from arbor.sealing import (
    MasterKeys,
    SealedRecord,
    derive_secret,
    key_id,
    parse_master_key,
    seal,
    unseal,
)

MASTER, NEW, FOREIGN = bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34))
KEYS = st.binary(min_size=32, max_size=32)


def seal_record(key: bytes, *, marked: bool = True) -> SealedRecord:
    record = seal(b"secret", keys=MasterKeys(current=key), purpose="x", bound=b"row").to_json()
    return SealedRecord.from_json(record if marked else {name: record[name] for name in set(record) - {"k"}})


def open_record(record: SealedRecord, keys: MasterKeys) -> tuple[bytes, str]:
    secret = unseal(record, keys=keys, purpose="x", bound=b"row", subject="the row")
    return secret.raw, secret.key_id


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("key", [MASTER, NEW])
def test_both_keys_open_while_they_are_rotated(key: bytes, marked: bool) -> None:
    keys = MasterKeys(current=NEW, other=MASTER)
    assert open_record(seal_record(key, marked=marked), keys) == (b"secret", key_id(key))


def test_the_current_key_alone_seals() -> None:
    keys = MasterKeys(current=NEW, other=MASTER)
    assert seal(b"secret", keys=keys, purpose="x", bound=b"row").k == keys.current_id == key_id(NEW)


@pytest.mark.parametrize("marked", [True, False])
def test_a_wrong_key_is_an_error_that_names_the_setting(marked: bool) -> None:
    with pytest.raises(SealBroken, match=r"the row does not open.*is ARBOR_MASTER_KEY the one"):
        open_record(seal_record(FOREIGN, marked=marked), MasterKeys(current=NEW, other=MASTER))


def test_a_wrong_key_and_the_open_ones_are_named_by_id() -> None:
    with pytest.raises(
        SealBroken, match=f"{key_id(FOREIGN)}, and here is {key_id(NEW)} and {key_id(MASTER)}"
    ):
        open_record(seal_record(FOREIGN), MasterKeys(current=NEW, other=MASTER))


def test_a_key_beside_itself_is_one_key() -> None:
    keys = MasterKeys(current=NEW, other=NEW)
    assert (keys.opening, keys.ids, keys.other_id) == ((NEW,), (key_id(NEW),), None)


def test_keys_show_in_no_representation() -> None:
    shown = repr(MasterKeys(current=NEW, other=MASTER))
    assert repr(NEW) not in shown
    assert repr(MASTER) not in shown


def test_a_record_of_another_version_is_refused() -> None:
    record = SealedRecord.from_json(seal_record(NEW).to_json() | {"v": 2})
    with pytest.raises(SealBroken, match="has version 2; this Arbor reads 1"):
        open_record(record, MasterKeys(current=NEW))


def test_derived_secrets_differ_by_purpose_and_master_key() -> None:
    first = derive_secret(MASTER, "django-secret-key")
    assert first == derive_secret(MASTER, "django-secret-key")
    assert first != derive_secret(MASTER, "database-password")
    assert first != derive_secret(bytes(32), "django-secret-key")
    assert len(derive_secret(MASTER, "django-secret-key", length=64)) == 64
    assert first == derive_secret(MASTER, "django-secret-key", length=64)[:32]  # HKDF expands, RFC 5869 2.3


def test_the_derivation_of_stored_secrets_never_changes() -> None:
    assert derive_secret(MASTER, "agent-private-key").hex() == FIRST_DERIVATION


# Computed once, when the derivation was written, by HMAC-SHA256 alone (RFC 5869), without the library.
FIRST_DERIVATION = "aefeb8a6d940f9588405bfca27c8f9c86f7d5a033cb08812833b7f56b3a4c910"


def test_a_short_master_key_or_an_empty_purpose_is_refused() -> None:
    with pytest.raises(ConfigurationInvalid, match="must be 32 bytes, got 16"):
        derive_secret(bytes(16), "x")
    with pytest.raises(ValueError, match="purpose"):
        derive_secret(MASTER, "")


@given(key=KEYS.filter(lambda key: len(set(key)) > 1))
def test_a_master_key_is_read_in_every_usual_spelling(key: bytes) -> None:
    spellings = (
        key.hex(),
        key.hex().upper(),
        base64.b64encode(key).decode(),
        base64.urlsafe_b64encode(key).decode(),
        base64.urlsafe_b64encode(key).decode().rstrip("="),
        f"  {base64.b64encode(key).decode()}\n",
    )
    assert all(parse_master_key(spelling) == key for spelling in spellings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "neither"),
        ("changeme!", "neither"),
        ("c2hvcnQ=", "got 5"),
        ("zz" * 32, "got 48"),
        ("00" * 32, "one byte repeated"),
        ("ж" * 43, "neither"),
    ],
)
def test_an_invalid_master_key_is_refused_without_being_quoted(text: str, message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message) as caught:
        parse_master_key(text)
    assert "openssl rand -base64 32" in str(caught.value)
    assert not text or text not in str(caught.value)
