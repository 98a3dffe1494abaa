"""Verify a whole seed before anything is used from it, and compare two verified seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO
from uuid import UUID

from django.conf import settings

from apps.fleet.seeds.refusals import audit_refusals
from apps.fleet.seeds.sections import BY_NAME
from apps.fleet.seeds.signing import verify_seed_signatures
from arbor.errors import SeedInvalid
from arbor.seeds.diff import SectionDifference, diff_rows
from arbor.seeds.limits import MEGABYTE, SeedLimits
from arbor.seeds.manifest import SeedManifest
from arbor.seeds.reading import SeedReader, SeedRow


@dataclass(frozen=True, kw_only=True)
class VerifiedSeed:
    """A seed whose digests and signatures are right, and the ids of its rows by section."""

    manifest: SeedManifest
    #: Whether this installation made the seed.
    is_own: bool
    ids: dict[str, set[bytes]]
    _source: BinaryIO

    def rows(self) -> Iterator[SeedRow]:
        """Yield the rows from the beginning, by the names that their columns have today.

        Raises SeedInvalid at the end if they are not the verified rows.
        """
        self._source.seek(0)
        reader = SeedReader(self._source, seed_limits())
        for row in reader.rows():
            section = BY_NAME.get(row.section)
            if section is None or not section.renamed:
                yield row
            else:
                yield replace(row, values=section.with_names_of_today(row.values))
        if reader.manifest != self.manifest:
            raise SeedInvalid("the file of the seed was replaced while it was read; nothing was used from it")


def seed_limits() -> SeedLimits:
    """Return the limits of the installation."""
    most = settings.ARBOR_SEED_MAX_MB * MEGABYTE
    return SeedLimits(compressed_bytes=most, uncompressed_bytes=most * 4)


def receive_seed(source: BinaryIO, *, tenant_id: UUID, actor: str) -> VerifiedSeed:
    """Verify a seed that somebody hands in, outside of transactions; a refusal is audited. Raises SeedInvalid."""
    with audit_refusals(tenant_id=tenant_id, actor=actor):
        return verify_seed(source)


def verify_seed(source: BinaryIO) -> VerifiedSeed:
    """Read a whole seed, check its digests and signatures, and write nothing. Raises SeedInvalid."""
    source.seek(0)
    reader = SeedReader(source, seed_limits())
    ids: dict[str, set[bytes]] = {}
    for row in reader.rows():
        row_id = row.values.get("id")
        if isinstance(row_id, str):
            ids.setdefault(row.section, set()).add(_id(row_id).bytes)
    return VerifiedSeed(
        manifest=reader.manifest,
        is_own=verify_seed_signatures(reader.manifest),
        ids=ids,
        _source=source,
    )


def compare_seeds(first: VerifiedSeed, second: VerifiedSeed) -> tuple[SectionDifference, ...]:
    """Return the differences from the first seed to the second, by section. Raises SeedInvalid."""
    same_agent = first.manifest.header.agent_id == second.manifest.header.agent_id
    return diff_rows(first.rows, second.rows, same_agent=same_agent)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise SeedInvalid(f"a row of the seed has the id {text[:60]!r}, which is no UUID") from error
