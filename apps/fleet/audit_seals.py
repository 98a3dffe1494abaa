"""Seal and verify the audit log: each tenant's chain, with its ended heartbeats, and the installation's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime, timedelta
from uuid import UUID

from apps.agents.services.authority import (
    authority_public_keys,
    ensure_system_authority,
    retired_public_keys,
)
from apps.audit.services.chains import AuditChain
from apps.audit.services.sealing import EndedHeartbeats, add_seal
from apps.audit.services.verification import ChainReport, verify_chain
from apps.fleet.audit_heads import HeadSink, configured_sinks, export_heads
from apps.heartbeats.services.reports.digests import (
    MAX_WAITING,
    digest_heartbeats,
    ended_ids_since,
    ended_since,
    ended_within,
)
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.agents.keys import SigningKey
from arbor.audit.faults import ChainFault, FaultKind, RowKind
from arbor.clock import Clock, SystemClock

#: The name of the job in logs.
JOB = "audit seals"
#: A heartbeat that ended less than this before a seal may be under the next seal.
_NEAR_A_SEAL = timedelta(minutes=10)

# Tenants with audit records or signals after their last seal, or with a last seal by an older key. The latest record and signal are
# compared: with EXISTS, the planner would read whole tables where nothing is new.
_WAITING = """
SELECT t.id AS agent_id FROM (SELECT t.id) AS one LEFT JOIN LATERAL (
    SELECT last_position, last_id, cursor, key_number FROM audit_auditseal s WHERE s.tenant_id = t.id
    ORDER BY number DESC LIMIT 1
) AS head ON true LEFT JOIN LATERAL (
    SELECT position, id FROM audit_auditevent e WHERE e.tenant_id = t.id ORDER BY position DESC, id DESC LIMIT 1
) AS event ON true LEFT JOIN LATERAL (
    SELECT id FROM signals_signalbatch b WHERE b.tenant_id = t.id ORDER BY id DESC LIMIT 1
) AS batch ON true
WHERE head.key_number < {key}
    OR (event.position, event.id) > (coalesce(head.last_position, 0), coalesce(head.last_id, '00000000-0000-0000-0000-000000000000'))
    OR batch.id > coalesce(nullif(split_part(head.cursor, '.', 1), ''), '00000000-0000-0000-0000-000000000000')::uuid
"""


def seal_audit(clock: Clock | None = None, sinks: Sequence[HeadSink] | None = None) -> JobRunResult:
    """Seal what was committed in all tenants and for the installation, then export the new heads.

    Raises ConfigurationInvalid without a master key, SealBroken under another one, and DeliveryFailed or ConfigurationInvalid where a
    sink refuses: the next run then exports these heads again.
    """
    clock = clock or SystemClock()
    signer = ensure_system_authority()
    result = run_job(
        JOB,
        waiting=_WAITING.format(key=signer.number),
        step=lambda tenant_id, _: seal_tenant(tenant_id, signer=signer, now=clock.now()),
    )
    sealed = 0
    while seal := add_seal(
        AuditChain(), after=AuditChain().head(), heartbeats=EndedHeartbeats(), signer=signer, now=clock.now()
    ):
        sealed += seal.header.events
    export_heads(configured_sinks() if sinks is None else sinks)
    return JobRunResult(steps=result.steps, done=result.done + sealed, failed=result.failed)


def seal_tenant(tenant_id: UUID, *, signer: SigningKey, now: datetime) -> int:
    """Add one seal to a tenant's chain; return the number of sealed rows, 0 where none was left or another process seals."""
    chain = AuditChain(tenant_id=tenant_id)
    head = chain.head()
    with tenant_transaction(tenant_id):
        rows, cursor = ended_since(head.header.cursor if head else "")
    heartbeats = EndedHeartbeats(rows=rows, cursor=cursor)
    seal = add_seal(chain, after=head, heartbeats=heartbeats, signer=signer, now=now)
    return seal.header.events + seal.header.heartbeats if seal else 0


def seal_by_latest_key() -> list[str]:
    """Add a seal by the latest key to each chain that ends with one by an older key; return the chains that another process seals."""
    signer, now = ensure_system_authority(), SystemClock().now()
    unsealed: list[str] = []
    for slug, chain in all_chains():
        head = chain.head()
        if head is None or head.key_number >= signer.number:
            continue
        if chain.tenant_id is not None:
            seal_tenant(chain.tenant_id, signer=signer, now=now)
        else:
            add_seal(chain, after=head, heartbeats=EndedHeartbeats(), signer=signer, now=now)
        if (head := chain.head()) is not None and head.key_number < signer.number:
            unsealed.append(f"tenant {slug}" if slug else "the installation")
    return unsealed


def verify_audit(
    chain: AuditChain,
    *,
    heads: Mapping[int, str] | None = None,
    latest: int | None = None,
    clock: Clock | None = None,
) -> ChainReport:
    """Verify a chain, or its latest seals, also against exported heads (digests by number).

    Raises SealBroken for a replaced key of the System Authority.
    """
    report = verify_chain(
        chain,
        keys=authority_public_keys(),
        retired=retired_public_keys(),
        heartbeat_digests=_heartbeat_digests,
        now=(clock or SystemClock()).now(),
        heads=heads,
        latest=latest,
    )
    if chain.tenant_id is not None:
        with tenant_transaction(chain.tenant_id):
            waiting = ended_ids_since(report.head.header.cursor if report.head else "")
        report.unsealed_heartbeats = len(waiting)
        # If more are waiting than were read, heartbeats of long ago may be among them.
        if len(waiting) < MAX_WAITING:
            _add_foreign_heartbeats(chain.tenant_id, report, known=report.sealed_heartbeats | waiting)
    return report


def _add_foreign_heartbeats(tenant_id: UUID, report: ChainReport, *, known: Set[UUID]) -> None:
    """Report the heartbeats that ended under the verified seals although no signal of their end was sealed.

    Heartbeats that ended shortly before the last seal are left out: their transaction may have committed after it.
    """
    head, since = report.head, report.complete_since
    if head is None or since is None:
        return
    after: UUID | None = None
    while True:
        with tenant_transaction(tenant_id):
            ids = ended_within(since, head.header.at - _NEAR_A_SEAL, after=after)
        foreign = [row_id for row_id in ids if row_id not in known]
        report.add(
            ChainFault(kind=FaultKind.ROW_ADDED, number=head.header.number, row=RowKind.HEARTBEAT, id=row_id)
            for row_id in foreign
        )
        if not ids:
            return
        after = ids[-1]


def all_chains() -> Iterator[tuple[str, AuditChain]]:
    """Yield the chains of all tenants by their slugs, then that of the installation."""
    for tenant_id, slug in Tenant.objects.using(OPS).order_by("slug").values_list("id", "slug"):
        yield slug, AuditChain(tenant_id=tenant_id)
    yield "", AuditChain()


def _heartbeat_digests(tenant_id: UUID, ids: Sequence[UUID]) -> dict[UUID, bytes]:
    with tenant_transaction(tenant_id):
        return {row_id: row.digest for row_id, row in digest_heartbeats(ids).items()}
