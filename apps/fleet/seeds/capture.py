"""Capture an agent as a seed: read its rows as a stream and write them to a file."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connections

from apps.agents.models import Agent, RequestedCapability
from apps.agents.services.lookup import agent_by_id
from apps.authority.models import CapabilityGrant
from apps.fleet.seeds.checks import Values
from apps.fleet.seeds.profiles import profile_values
from apps.fleet.seeds.queries import ONE_SNAPSHOT, read_rows
from apps.fleet.seeds.sections import PROFILE, REQUESTS, SECTIONS, SeedSection
from apps.fleet.seeds.signing import seed_signer
from apps.memories.models import Mind
from apps.tenants.encoding import from_json
from apps.tenants.packing import unpack_in_json
from apps.tenants.scope import APP, current_tenant
from arbor.ids import uuid7
from arbor.seeds.manifest import SEED_VERSION, SeedHeader, SeedManifest, VectorModel
from arbor.seeds.writing import SeedOutput, SeedWriter
from arbor.version import VERSION

#: Rows that are read from the database at once.
_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """The reason of a capture, and whether the seed has vectors."""

    reason: str
    with_vectors: bool = True


def capture(*, agent_id: UUID, output: SeedOutput, options: CaptureOptions) -> SeedManifest:
    """Write an agent's seed in the transaction that is open, and return its manifest. Raises NotFound, IdentityRefused."""
    agent = agent_by_id(agent_id)
    writer = SeedWriter(output, _header(agent, options))
    writer.begin_section(PROFILE)
    writer.write_row(profile_values(agent))
    writer.begin_section(REQUESTS, digested=False)
    for request in _requests(agent):
        writer.write_row(request)
    for section in SECTIONS:
        writer.begin_section(section.name, digested=section.digested)
        for values, vectors in rows_of(section, agent_id):
            writer.write_row(values, vectors if options.with_vectors else None)
    return writer.finish(seed_signer(agent))


def begin_snapshot() -> None:
    """Make the transaction that has just begun see the rows of one moment."""
    with connections[APP].cursor() as cursor:
        cursor.execute(ONE_SNAPSHOT)


def rows_of(section: SeedSection, agent_id: UUID) -> Iterator[tuple[Values, dict[str, str]]]:
    """Yield the rows of a section in the order of their keys, each with its vectors."""
    with connections[APP].chunked_cursor() as cursor:
        cursor.execute(read_rows(section.name), {"tenant": current_tenant(), "agent": agent_id})
        while rows := cursor.fetchmany(_BATCH):
            for text, *vectors in rows:
                yield _values(section, from_json(text)), _vectors(section, vectors)


def _values(section: SeedSection, values: Values) -> Values:
    for column in section.packed:
        packed = values[column]
        values[column] = None if packed is None else unpack_in_json(packed)
    return section.prepare(values) if section.prepare else values


def _vectors(section: SeedSection, read: list[Any]) -> dict[str, str]:
    vectors: dict[str, str] = {}
    for field, vector, model in zip(section.vectors, read[::2], read[1::2], strict=True):
        if vector is not None:
            vectors[str(field.column)] = base64.b64encode(vector).decode()
            if model:
                vectors["embedding_model"] = model
    return vectors


def _header(agent: Agent, options: CaptureOptions) -> SeedHeader:
    mind = Mind.objects.filter(agent_id=agent.id).first() if options.with_vectors else None
    return SeedHeader(
        id=uuid7(),
        seed_version=SEED_VERSION,
        agent_id=agent.id,
        public_id=agent.public_id,
        name=agent.name,
        captured_at=datetime.now(UTC),
        captured_on_node=socket.gethostname()[:253],
        capture_reason=options.reason,
        arbor_version=VERSION,
        vectors=VectorModel(name=mind.embedding_model, dimension=mind.embedding_dimension) if mind else None,
    )


def _requests(agent: Agent) -> Iterator[Values]:
    """Yield the capabilities that the agent asks for where it is imported; none of them is a grant."""
    rows = RequestedCapability.objects.filter(agent_id=agent.id).values(
        "resource", "description", "constraints"
    )
    requests = {row["resource"]: row for row in rows}
    granted = CapabilityGrant.objects.filter(agent_id=agent.id, revoked_at__isnull=True)
    for resource in granted.values_list("resource", flat=True):
        requests.setdefault(resource, {"resource": resource, "description": "", "constraints": {}})
    for resource in sorted(requests):
        yield dict(requests[resource])
