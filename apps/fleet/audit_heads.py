"""Export the heads of the chains to places outside of the database: the log of the worker, a file, a URL.

A head vouches for all that is sealed before it, so the next head replaces a lost one. Whoever controls the database can cut off the end of a
chain: the job then seals what is left, and only a comparison with an exported head shows the cut.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import batched
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import connections

from apps.audit.models import PlatformSeal
from apps.audit.services.chains import AuditChain
from apps.memories.models import JobRun
from apps.queues import Task
from apps.tenants.scope import OPS
from arbor.adapters.webhook import Webhook
from arbor.audit.chain import Seal, format_moment
from arbor.errors import ConfigurationInvalid, DeliveryFailed, Invalid

log = structlog.get_logger(__name__)

#: The event of a head in the log.
HEAD_EVENT = "audit_head_sealed"
#: Heads in one request at most.
_HEADS_PER_REQUEST = 500

#: The numbers of the last heads that each sink accepted, by chain, since the last run in which no sink failed: while one sink
#: refuses heads, the others do not get the same heads again at each run.
_accepted: dict[str, dict[str, int]] = {}

# The tenants whose last seal is younger than a time.
_SEALED_SINCE = """
SELECT head.tenant_id FROM tenants_tenant t CROSS JOIN LATERAL (
    SELECT s.tenant_id, s.at FROM audit_auditseal s WHERE s.tenant_id = t.id ORDER BY s.number DESC LIMIT 1
) AS head
WHERE head.at > %s ORDER BY head.tenant_id
"""


class HeadSink(Protocol):
    """A place for heads, outside of the database."""

    @property
    def name(self) -> str:
        """Return the name of the sink, as errors show it."""

    def accept(self, heads: Sequence[dict[str, Any]]) -> None:
        """Store heads. Raises DeliveryFailed or ConfigurationInvalid."""


class HeadLog:
    """The log of the worker, a line for each head: outside of the database, but the worker's owner can change it."""

    name = "the log"

    def accept(self, heads: Sequence[dict[str, Any]]) -> None:
        """Log the chain, number and digest of each head, which a later comparison needs."""
        for head in heads:
            log.info(HEAD_EVENT, chain=head["chain"], number=head["number"], digest=head["digest"])


class HeadFile:
    """A file that heads are appended to, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"the file {path}"

    def accept(self, heads: Sequence[dict[str, Any]]) -> None:
        """Append heads, and wait until they are on the disk. Raises ConfigurationInvalid for a file that cannot be written."""
        lines = "".join(json.dumps(head, sort_keys=True) + "\n" for head in heads)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ConfigurationInvalid(
                f"ARBOR_AUDIT_HEADS_FILE must be a file that the workers of the queue `outbox` may append to,"
                f" got {self._path}: {error.strerror}"
            ) from error


class HeadUrl:
    """A URL to which heads are posted: `{"heads": […]}`."""

    def __init__(self, url: str) -> None:
        self._url = url
        # An address may have a password.
        self.name = f"the URL of {urlsplit(url).hostname}"
        self._webhook = Webhook(
            allow_http=settings.ARBOR_WEBHOOK_ALLOW_HTTP, allow_private=settings.ARBOR_WEBHOOK_ALLOW_PRIVATE
        )

    def accept(self, heads: Sequence[dict[str, Any]]) -> None:
        """Post heads; they are signed, so the request is not. Raises DeliveryFailed."""
        for part in batched(heads, _HEADS_PER_REQUEST, strict=False):
            self._webhook.post(self._url, body=json.dumps({"heads": part}).encode(), headers={})


def configured_sinks() -> list[HeadSink]:
    """Return the log, and the places that the settings name."""
    sinks: list[HeadSink] = [HeadLog()]
    if settings.ARBOR_AUDIT_HEADS_FILE:
        sinks.append(HeadFile(Path(settings.ARBOR_AUDIT_HEADS_FILE)))
    if settings.ARBOR_AUDIT_HEADS_URL:
        sinks.append(HeadUrl(settings.ARBOR_AUDIT_HEADS_URL))
    return sinks


def export_heads(sinks: Sequence[HeadSink]) -> int:
    """Export the heads that are new since the last successful run of the job, and return their number. No transaction is open.

    Raises DeliveryFailed or ConfigurationInvalid after all sinks were tried. The next run exports the same heads again, except to the
    sinks that accepted them from this process.
    """
    heads = [head_json(chain, seal) for chain, seal in _new_heads()]
    failures: dict[str, Exception] = {}
    for sink in sinks if heads else ():
        accepted = _accepted.setdefault(sink.name, {})
        new = [head for head in heads if accepted.get(head["chain"]) != head["number"]]
        try:
            if new:
                sink.accept(new)
        except Exception as error:  # noqa: BLE001 (one sink that fails must not keep the heads from another)
            failures[sink.name] = error
        else:
            accepted |= {head["chain"]: head["number"] for head in new}
    if not failures:
        _accepted.clear()
        return len(heads)
    first, *others = failures.values()
    if not others:
        raise first
    raise DeliveryFailed("; ".join(f"{name}: {error}" for name, error in failures.items())) from first


def head_json(chain: AuditChain, seal: Seal) -> dict[str, Any]:
    """Return a head as it is exported: all that a program needs to check its digest and signature."""
    header = seal.header
    return {
        "chain": chain.name,
        "number": header.number,
        "at": format_moment(header.at),
        "previous": header.previous.hex(),
        "position": header.position,
        "last_id": str(header.last_id or ""),
        "events": header.events,
        "events_digest": header.events_digest.hex(),
        "cursor": header.cursor,
        "heartbeats": header.heartbeats,
        "heartbeats_digest": header.heartbeats_digest.hex(),
        "digest": seal.digest.hex(),
        "key": seal.key_number,
        "signature": seal.signature.hex(),
    }


def read_heads(lines: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the digests of exported heads, by chain and number. A line may have text before its JSON object, as lines of logs do.

    Of several digests of one number the first counts: after the end of a chain was replaced, the job exports its new seals too.
    Raises Invalid for a line without a head.
    """
    heads: dict[str, dict[int, str]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            head = json.loads(line[line.index("{") :])
            heads.setdefault(str(head["chain"]), {}).setdefault(int(head["number"]), str(head["digest"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise Invalid(
                f"line {number} is no exported head: it must be a JSON object with chain, number and digest"
            ) from error
    return heads


def _new_heads() -> Iterator[tuple[AuditChain, Seal]]:
    since = _export_start()
    with connections[OPS].cursor() as cursor:
        cursor.execute(_SEALED_SINCE, [since])
        tenants = [tenant_id for (tenant_id,) in cursor.fetchall()]
    chains = [AuditChain(tenant_id=tenant_id) for tenant_id in tenants]
    if PlatformSeal.objects.using(OPS).filter(at__gt=since).exists():
        chains.append(AuditChain())
    for chain in chains:
        if head := chain.head():
            yield chain, head


def _export_start() -> datetime:
    """Return the time since which seals are exported: the job's last success, less the duration of its latest run, to miss none."""
    run = JobRun.objects.using(OPS).filter(name=Task.SEAL_AUDIT.value, succeeded_at__isnull=False).first()
    if run is None or run.succeeded_at is None:
        return datetime.min.replace(tzinfo=UTC)
    return run.succeeded_at - timedelta(seconds=run.seconds)
