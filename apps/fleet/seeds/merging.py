"""Merge what the agent of a seed learned into another agent: knowledge as memories, beliefs and preferences as proposals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import batched
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.fleet.lifecycle import lock_whole_agent
from apps.fleet.seeds.files import VerifiedSeed
from apps.fleet.seeds.refusals import audit_refusals
from apps.fleet.seeds.restoring import STATEMENT_TIMEOUT, require_no_heartbeat
from apps.fleet.seeds.saving import save_seed
from apps.fleet.seeds.sections import BY_NAME
from apps.fleet.seeds.writing import checked_values
from apps.memories.models import Memory
from apps.memories.services.store.remember import store
from apps.selves.models import Belief, Preference
from apps.selves.services.proposals import propose
from apps.tenants.scope import tenant_transaction
from arbor.clock import to_utc
from arbor.errors import Invalid, SeedInvalid
from arbor.memory.values import MemoryType, NewMemory
from arbor.seeds.merging import (
    LEARNED_TYPES,
    MERGED_SECTIONS,
    SECOND_HAND,
    MergeConflict,
    MergePlan,
    OwnKnowledge,
    expiry_of,
    plan_merge,
)
from arbor.seeds.reading import SeedRow
from arbor.seeds.saving import SeedReason
from arbor.selves.proposals import NewProposal, ProposalKind

_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class MergeOptions:
    """Options of a merge: trust in a seed of another installation, and a dry run, which only reports."""

    trust_foreign: bool = False
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class MergeReport:
    """The result of a merge."""

    agent_id: UUID
    name: str
    #: The agent of the seed, and the digest that new memories name as their source.
    from_name: str
    digest: str
    #: New memories, new proposals, and rows that the agent has too, by section.
    memories: int
    proposals: int
    known: dict[str, int]
    conflicts: tuple[MergeConflict, ...]
    #: Memories of the seed that have expired.
    expired: int
    #: Beliefs and preferences for which there was no room among the proposals.
    postponed: int
    dry_run: bool
    saved_seed_id: UUID | None = None


def merge_seed(
    *, tenant_id: UUID, agent_id: UUID, seed: VerifiedSeed, options: MergeOptions, actor: str
) -> MergeReport:
    """Merge the knowledge of a seed into an agent; a seed of the agent is saved first.

    Facts, procedures and strategies become memories with the source `seed:DIGEST`, trusted a fifth less; beliefs and
    preferences become proposals. Nothing of the other's identity is merged, and what contradicts the agent is only
    reported. Raises NotFound, IdentityRefused, SeedInvalid, and TransitionIllegal during a heartbeat.
    """
    header = seed.manifest.header
    with audit_refusals(tenant_id=tenant_id, agent_id=agent_id, actor=actor):
        if header.agent_id == agent_id:
            raise SeedInvalid("the seed is of the same agent: restore it instead")
        if not (seed.is_own or options.trust_foreign):
            raise SeedInvalid(
                "the seed is signed by another installation; read where it comes from, and merge it with --trust-foreign"
            )
        with tenant_transaction(tenant_id, statement_timeout=STATEMENT_TIMEOUT):
            return _merge(agent_id, seed, options, actor)


def _merge(agent_id: UUID, seed: VerifiedSeed, options: MergeOptions, actor: str) -> MergeReport:
    agent = lock_whole_agent(agent_id)
    require_no_heartbeat(agent)
    plan = plan_merge(_checked(seed.rows()), _own_knowledge(agent_id), now=datetime.now(UTC))
    memories, proposals = len(plan.memories), len(plan.beliefs) + len(plan.preferences)
    saved = None
    if not options.dry_run:
        saved = save_seed(agent_id=agent_id, reason=SeedReason.MERGE, actor=actor)
        memories, proposals = _write(agent_id, plan, f"seed:{seed.manifest.trailer.digest}")
    report = MergeReport(
        agent_id=agent_id,
        name=agent.name,
        from_name=seed.manifest.header.name,
        digest=seed.manifest.trailer.digest,
        memories=memories,
        proposals=proposals,
        known=plan.known,
        conflicts=tuple(plan.conflicts),
        expired=plan.expired,
        postponed=plan.postponed,
        dry_run=options.dry_run,
        saved_seed_id=saved.id if saved else None,
    )
    if not options.dry_run:
        _record(report, seed, actor)
    return report


def _checked(rows: Iterable[SeedRow]) -> Iterator[SeedRow]:
    """Yield the rows that a merge reads, with their values checked as in a restore. Raises SeedInvalid."""
    for row in rows:
        if row.section in MERGED_SECTIONS:
            values, _ = checked_values(BY_NAME[row.section], row.values)
            yield replace(row, values=values)


def _own_knowledge(agent_id: UUID) -> OwnKnowledge:
    memories = Memory.objects.filter(agent_id=agent_id, type__in=LEARNED_TYPES).values_list(
        "type", "content_hash"
    )
    beliefs = Belief.objects.filter(agent_id=agent_id).values_list("statement_hash", "confidence", "status")
    preferences = Preference.objects.filter(agent_id=agent_id).values_list("key", "value")
    return OwnKnowledge(
        memories=frozenset((kind, bytes(digest).hex()) for kind, digest in memories.iterator()),
        beliefs={bytes(digest).hex(): (confidence, status) for digest, confidence, status in beliefs},
        preferences=dict(preferences),
    )


def _write(agent_id: UUID, plan: MergePlan, source: str) -> tuple[int, int]:
    """Store the memories and the proposals of a plan, and return the numbers of new ones.

    Memories with the same words, from different sessions of the other agent, become one.
    """
    try:
        memories = [_memory(values, source) for values in plan.memories]
        proposals = [_belief(values, source) for values in plan.beliefs]
        proposals += [_preference(values, source) for values in plan.preferences]
    except (Invalid, ValueError) as error:
        raise SeedInvalid(f"a row of the seed is not valid: {error}") from error
    stored = sum(
        store(agent_id=agent_id, memories=batch, vectors=None).stored
        for batch in batched(memories, _BATCH, strict=False)
    )
    return stored, len(propose(agent_id=agent_id, proposals=proposals).made)


def _memory(values: dict[str, Any], source: str) -> NewMemory:
    return NewMemory(
        content=values["content"],
        occurred_at=to_utc(datetime.fromisoformat(values["occurred_at"])),
        expires_at=expiry_of(values),
        type=MemoryType(values["type"]),
        importance=values["importance"],
        decay_rate=values["decay_rate"],
        trust=values["trust"] * SECOND_HAND,
        emotional_valence=values["emotional_valence"],
        source=source,
        detail=values["detail"] | {"source_id": values["id"]},
    )


def _belief(values: dict[str, Any], source: str) -> NewProposal:
    return NewProposal(
        kind=ProposalKind.BELIEF,
        content=values["statement"],
        confidence=values["confidence"] * SECOND_HAND,
        source=source,
        change={"category": values["category"]},
    )


def _preference(values: dict[str, Any], source: str) -> NewProposal:
    return NewProposal(
        kind=ProposalKind.PREFERENCE,
        content=f"{values['key']}: {values['value']}",
        confidence=SECOND_HAND,
        source=source,
        change={"key": values["key"], "value": values["value"]},
    )


def _record(report: MergeReport, seed: VerifiedSeed, actor: str) -> None:
    record(
        action=AuditAction.SEED_MERGED,
        actor=actor,
        agent_id=report.agent_id,
        message=f"merged what {report.from_name} learned into {report.name}",
        detail={
            "digest": report.digest,
            "from_agent": str(seed.manifest.header.agent_id),
            "memories": report.memories,
            "proposals": report.proposals,
            "expired": report.expired,
            "conflicts": len(report.conflicts),
            "saved_seed_id": str(report.saved_seed_id),
        },
    )
