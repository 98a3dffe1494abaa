"""The manifest of a seed: header, digests of its sections, and signatures."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

import orjson
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from arbor.clock import in_utc
from arbor.errors import SeedInvalid

#: The version of the format that this Arbor writes. Arbor refuses a seed with a later version.
SEED_VERSION = 1

type Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel, frozen=True, extra="forbid"):
    """A part of a manifest, which refuses fields that it does not know."""

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Read the part from JSON. Raises SeedInvalid."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or cls.__name__
            raise SeedInvalid(f"the manifest of the seed is wrong at {place}: {first['msg']}") from error

    def encoded(self) -> bytes:
        """Return the part as canonical JSON."""
        return canonical_json(self.model_dump(mode="json"))


class VectorModel(_Part):
    """The embedding model of the vectors in a seed."""

    name: Annotated[str, Field(max_length=100)]
    dimension: Annotated[int, Field(ge=1, le=16_000)]


class SeedHeader(_Part):
    """The beginning of a seed: whose it is, and when, where and why it was captured."""

    id: UUID
    seed_version: int
    agent_id: UUID
    #: The id that the agent's first key proves.
    public_id: Annotated[str, Field(pattern=r"^agent_[0-9a-f]{64}$")]
    name: Annotated[str, Field(max_length=100)]
    #: A row with a time beyond the years 1 to 9999 could be stored, but not read.
    captured_at: Annotated[datetime, AfterValidator(in_utc)]
    captured_on_node: Annotated[str, Field(max_length=253)]
    capture_reason: Annotated[str, Field(max_length=500)]
    arbor_version: Annotated[str, Field(max_length=100)]
    #: None where the seed has no vectors.
    vectors: VectorModel | None = None


class SectionDigest(_Part):
    """The number of rows of a section, and the SHA-256 of its rows without their vectors."""

    name: Annotated[str, Field(max_length=60)]
    rows: Annotated[int, Field(ge=0)]
    digest: Digest


class SeedTrailer(_Part):
    """The end of a seed: digests of all that comes before."""

    #: The digest of the header.
    header: Digest
    sections: tuple[SectionDigest, ...]
    #: The digest of the agent's state: the same for two seeds of the same state.
    digest: Digest
    #: The digest of every byte of the sections, vectors included.
    content: Digest

    def signed_bytes(self) -> bytes:
        """Return the bytes that are signed."""
        return b"arbor/seed/v1\n" + self.encoded()


class SeedSignature(_Part):
    """A signature, and the number and public key of the key that made it, in hexadecimal."""

    key_number: Annotated[int, Field(ge=1)]
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class ChainLink(_Part):
    """A public key of an agent; each key after the first is signed by the one before."""

    number: Annotated[int, Field(ge=1)]
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    previous_signature: Annotated[str, Field(pattern=r"^([0-9a-f]{128})?$")] = ""


class SeedSignatures(_Part):
    """The signatures of a seed by its agent and by the System Authority of its installation."""

    #: The tenant that the chain of keys is bound to, where the agent lives.
    tenant_id: Annotated[str, Field(max_length=36)]
    keys: Annotated[tuple[ChainLink, ...], Field(min_length=1, max_length=1000)]
    agent: SeedSignature
    authority: SeedSignature


class SeedManifest(_Part):
    """All of a seed but its rows."""

    header: SeedHeader
    trailer: SeedTrailer
    signatures: SeedSignatures
    #: Compressed and uncompressed bytes.
    bytes: int
    uncompressed_bytes: int

    @property
    def rows(self) -> dict[str, int]:
        """Return the number of rows by section."""
        return {section.name: section.rows for section in self.trailer.sections}


def canonical_json(value: Any) -> bytes:
    """Return a value as JSON with sorted keys: equal values have equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def state_digest(sections: Mapping[str, str]) -> str:
    """Return the digest of a state from the digests of its sections; their order does not matter."""
    return hashlib.sha256(canonical_json(dict(sections))).hexdigest()
