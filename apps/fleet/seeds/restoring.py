"""Restore an agent to the state of one of its seeds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.fleet.lifecycle import lock_whole_agent
from apps.fleet.seeds.files import VerifiedSeed
from apps.fleet.seeds.profiles import apply_profile
from apps.fleet.seeds.refusals import audit_refusals
from apps.fleet.seeds.saving import save_seed
from apps.fleet.seeds.sections import PROFILE, SECTIONS, SeedGroup
from apps.fleet.seeds.writing import RowWriter, ensure_mind
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.knowledge.services.active_skills import update_skill_versions
from apps.memories.services.embedding.minds import model_of
from apps.selves.services.changes import SelfChangeRecord, record_self_change
from apps.selves.services.history import latest_version, load_self
from apps.tenants.scope import APP, tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.errors import SeedInvalid, TransitionIllegal
from arbor.seeds.saving import SeedReason
from arbor.selves.history import differences

#: The longest time of one statement of a restore or an import.
STATEMENT_TIMEOUT = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class RestoreOptions:
    """Options of a restore: the groups to leave as they are, and a dry run, which only reports."""

    skip: frozenset[SeedGroup] = frozenset()
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class SeedReport:
    """The result of writing a seed into an agent."""

    agent_id: UUID
    name: str
    digest: str
    #: The number of written rows by section.
    rows: dict[str, int]
    with_vectors: bool
    dry_run: bool = False
    #: The seed of the state before, which was saved; None for a new agent.
    saved_seed_id: UUID | None = None
    #: The number of rows that were left out, because they refer to what the agent does not have, by section.
    dropped: dict[str, int] = field(default_factory=dict)
    #: Columns of the seed that this Arbor does not have, by section.
    unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: The capabilities that a new agent asks for; none is granted.
    requests: tuple[str, ...] = ()


def restore_seed(
    *, tenant_id: UUID, agent_id: UUID, seed: VerifiedSeed, options: RestoreOptions, actor: str
) -> SeedReport:
    """Bring an agent back to the state of a seed of its own; a seed of the state before is saved first.

    Raises NotFound, IdentityRefused, SeedInvalid for another agent's seed, TransitionIllegal during a heartbeat, AlreadyExists for the
    name in the profile, and LimitReached for models that the agent's skills do not fit.
    """
    with audit_refusals(tenant_id=tenant_id, agent_id=agent_id, actor=actor):
        _require_own(seed, agent_id)
        with tenant_transaction(tenant_id, statement_timeout=STATEMENT_TIMEOUT):
            report = _restore(agent_id, seed, options, actor)
            if options.dry_run:
                transaction.set_rollback(True, using=APP)
            return report


def has_comparable_vectors(seed: VerifiedSeed, model: EmbeddingModel) -> bool:
    """Return whether the vectors of a seed are comparable with those of this model."""
    vectors = seed.manifest.header.vectors
    return vectors is not None and EmbeddingModel(name=vectors.name, dimension=vectors.dimension) == model


def _require_own(seed: VerifiedSeed, agent_id: UUID) -> None:
    header = seed.manifest.header
    if header.agent_id != agent_id:
        raise SeedInvalid(
            f"the seed is of the agent {header.name} ({header.agent_id}), not of {agent_id}: import it as a new agent,"
            " or merge what it learned"
        )
    if not seed.is_own:
        raise SeedInvalid("the seed is signed by another installation: import it as a new agent")


def _restore(agent_id: UUID, seed: VerifiedSeed, options: RestoreOptions, actor: str) -> SeedReport:
    agent = lock_whole_agent(agent_id)
    if agent.public_id != seed.manifest.header.public_id:
        raise SeedInvalid(f"the seed has another identity than {agent.name}: its public id differs")
    require_no_heartbeat(agent)
    saved = None if options.dry_run else save_seed(agent_id=agent_id, reason=SeedReason.RESTORE, actor=actor)
    groups = frozenset(SeedGroup) - options.skip
    before = load_self(agent_id)
    model = model_of(agent_id)
    writer = RowWriter(
        agent_id=agent_id,
        model=model,
        carries_vectors=has_comparable_vectors(seed, model),
        groups=groups,
        known=known_ids(seed, groups, agent_id),
    )
    writer.delete_others(seed.ids)
    others = writer.write(seed.rows())
    if SeedGroup.MEMORIES in groups:
        ensure_mind(agent_id, tenant_id=agent.tenant_id, model=model)
    if SeedGroup.PROFILE in groups:
        for values in others.get(PROFILE, ()):
            apply_profile(agent, values=values)
    # The profile and the policy may bring other models, which the agent's skills must fit.
    update_skill_versions(agent, actor=actor)
    digest = seed.manifest.trailer.digest
    reason = f"restored the seed of {seed.manifest.header.captured_at:%Y-%m-%d %H:%M} UTC"
    version = latest_version(agent_id) + 1
    for difference in differences(before, load_self(agent_id)):
        record_self_change(
            SelfChangeRecord.of_restoration(
                agent_id, difference, after=difference.after, actor=actor, reason=reason, version=version
            )
        )
    report = SeedReport(
        agent_id=agent_id,
        name=agent.name,
        digest=digest,
        rows=writer.written,
        with_vectors=writer.carries_vectors,
        dry_run=options.dry_run,
        saved_seed_id=saved.id if saved else None,
        dropped=writer.dropped,
        unknown={name: tuple(sorted(columns)) for name, columns in writer.unknown.items()},
    )
    _record(agent, report, options.skip, actor)
    return report


def known_ids(
    seed: VerifiedSeed, groups: frozenset[SeedGroup], agent_id: UUID
) -> dict[str, frozenset[bytes] | set[bytes]]:
    """Return the ids that rows of a seed may refer to, by table: the tenant's agents, and the agent's rows after the restore."""
    agents = {row_id.bytes for row_id in Agent.objects.values_list("id", flat=True)}
    known: dict[str, frozenset[bytes] | set[bytes]] = {
        "agents.Agent": agents | {seed.manifest.header.agent_id.bytes}
    }
    for section in SECTIONS:
        if section.key != ("id",):
            continue
        label = section.model._meta.label
        if section.group in groups:
            known[label] = seed.ids.get(section.name, set())
        elif not section.parent:
            rows = section.model._default_manager.filter(Q(agent_id=agent_id))
            known[label] = {row_id.bytes for row_id in rows.values_list("pk", flat=True)}
    return known


def require_no_heartbeat(agent: Agent) -> None:
    """Raise TransitionIllegal while a heartbeat of the agent is under way. The agent's schedule is locked."""
    under_way = (HeartbeatStatus.RUNNING, HeartbeatStatus.WAITING)
    if Heartbeat.objects.filter(agent_id=agent.id, status__in=under_way).exists():
        raise TransitionIllegal(
            f"a heartbeat of {agent.name} is under way: pause the agent, and try again when the heartbeat has ended"
        )


def _record(agent: Agent, report: SeedReport, skip: Collection[SeedGroup], actor: str) -> None:
    detail: dict[str, Any] = {
        "digest": report.digest,
        "rows": report.rows,
        "skipped": sorted(skip),
        "saved_seed_id": str(report.saved_seed_id) if report.saved_seed_id else None,
    }
    record(
        action=AuditAction.SEED_RESTORED,
        actor=actor,
        agent_id=agent.id,
        message=f"restored {agent.name} from a seed",
        detail=detail,
    )
