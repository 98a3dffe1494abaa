"""The System Authority of this installation: the keys with which it endorses agents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from apps.agents.models import AuthorityKey
from apps.tenants.encoding import from_json, to_json
from apps.tenants.keys import master_keys
from apps.tenants.scope import OWNER
from arbor.agents.endorsement import SYSTEM_AUTHORITY
from arbor.agents.identity import PrivateKey, generate_key_pair, prefixed_bytes
from arbor.agents.keys import FIRST, SigningKey
from arbor.errors import SealBroken
from arbor.sealing import SEAL_VERSION, MasterKeys, OpenedSecret, SealedRecord, seal, unseal

_SEAL_PURPOSE = "authority-private-key"
_SEAL_LABEL = "arbor/seal/authority/v1"
#: Keys of the System Authority that a process has opened.
_KEYS_CACHED = 64


def ensure_system_authority() -> SigningKey:
    """Return the System Authority's key that signs now; create the first one where there is none.

    Raises ConfigurationInvalid without a master key, and SealBroken under another one.
    """
    row = AuthorityKey.objects.order_by("-number").first() or _create_key(FIRST)
    return _open_row(row)


def refuse_other_master_key() -> None:
    """Check, as the owner of the tables, that the System Authority's key opens here; a database without tables passes.

    Raises ConfigurationInvalid without a master key, and SealBroken under another one.
    """
    keys = master_keys()
    with connections[OWNER].cursor() as cursor:
        tables = connections[OWNER].introspection.table_names(cursor)
    if AuthorityKey._meta.db_table not in tables:
        return
    # No other columns: the table may be one of an earlier version.
    rows = AuthorityKey.objects.using(OWNER).order_by("-number")
    if latest := rows.values_list("number", "sealed_private_key").first():
        number, sealed = latest
        unseal_authority_key(sealed, number=number, keys=keys)


def authority_public_keys() -> dict[int, bytes]:
    """Return the public halves of the System Authority's keys in use by number, each checked. Raises SealBroken."""
    return {row.number: _open_row(row).public for row in authority_keys()}


def authority_keys() -> QuerySet[AuthorityKey]:
    """Return the System Authority's keys in use, by number: those whose private halves have not been deleted."""
    rows: QuerySet[AuthorityKey] = AuthorityKey.objects.exclude(sealed_private_key={})
    return rows.order_by("number")


def retired_public_keys() -> dict[int, bytes]:
    """Return the public halves of the retired keys by number, unchecked: what they verify needs another proof."""
    rows = AuthorityKey.objects.filter(sealed_private_key={})
    return {row.number: bytes(row.public_key) for row in rows}


def add_authority_key() -> SigningKey:
    """Create a further key of the System Authority, which signs from now on; the keys before stay valid."""
    return _open_row(_create_key(ensure_system_authority().number + 1))


def retire_authority_keys() -> list[int]:
    """Delete the private halves of all keys but the latest, and return their numbers: their signatures are no longer valid."""
    outdated = authority_keys().filter(number__lt=ensure_system_authority().number)
    numbers = list(outdated.values_list("number", flat=True))
    outdated.update(sealed_private_key={})
    return numbers


def open_authority_key(number: int, public: bytes, sealed: str) -> SigningKey:
    """Open a key of the System Authority from its stored parts, `sealed` in JSON text; once per process.

    Raises SealBroken if the private half does not open, or belongs to another public key.
    """
    key = _build_key(number, sealed)
    if key.public != public:
        raise SealBroken(
            f"the key {number} of the System Authority is not the one that was created: it was replaced"
        )
    return key


def seal_authority_key(private: PrivateKey, *, number: int, keys: MasterKeys) -> dict[str, int | str]:
    """Seal the private half of a key, bound to its number."""
    return seal(private.raw, keys=keys, purpose=_SEAL_PURPOSE, bound=_bound(SEAL_VERSION, number)).to_json()


def unseal_authority_key(record: Mapping[str, Any], *, number: int, keys: MasterKeys) -> OpenedSecret:
    """Open the private half of a key. Raises SealBroken."""
    sealed = SealedRecord.from_json(record)
    return unseal(
        sealed,
        keys=keys,
        purpose=_SEAL_PURPOSE,
        bound=_bound(sealed.v, number),
        subject=f"the sealed key {number} of the System Authority",
    )


def _create_key(number: int) -> AuthorityKey:
    pair = generate_key_pair()
    row = AuthorityKey(
        number=number,
        public_key=pair.public,
        sealed_private_key=seal_authority_key(pair.private, number=number, keys=master_keys()),
    )
    # Another process may create the key at the same moment; one of the two remains.
    AuthorityKey.objects.bulk_create([row], ignore_conflicts=True)
    created: AuthorityKey = AuthorityKey.objects.get(number=number)
    return created


def _open_row(row: AuthorityKey) -> SigningKey:
    return open_authority_key(row.number, bytes(row.public_key), to_json(row.sealed_private_key))


@lru_cache(maxsize=_KEYS_CACHED)
def _build_key(number: int, sealed: str) -> SigningKey:
    secret = unseal_authority_key(from_json(sealed), number=number, keys=master_keys())
    return SigningKey.build(PrivateKey(raw=secret.raw), public_id=SYSTEM_AUTHORITY, number=number)


def _bound(version: int, number: int) -> bytes:
    return prefixed_bytes(_SEAL_LABEL, version, number)
