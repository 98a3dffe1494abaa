"""Propose established memories, habits and clusters as parts of the self, at maintenance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import Experience
from apps.selves.services.proposals import ProposalResult, expire_overdue, propose
from apps.tenants.packing import unpack
from apps.tenants.statements import fetch
from arbor.memory.text.keywords import NO_KEYWORDS
from arbor.memory.trust import OWN_ROLES, OWN_SOURCES
from arbor.selves.calibration import CONFIRMED, EDGE_OF_MIND, THRESHOLDS
from arbor.selves.experiences import MAX_ACTIONS_READ, MAX_EXPERIENCES, Pattern, patterns
from arbor.selves.proposals import MAX_EVIDENCE, PENDING_FOR, NewProposal, ProposalKind, shorten_proposal
from arbor.selves.tendencies import Tendency, is_another_strength, tendencies
from arbor.selves.values import TEXT_LENGTH, AspectKind, BeliefCategory, BeliefStatus

# Seed 000, 5: the conditions of a promotion.
MIN_AGE_DAYS = 3
MIN_TRUST = CONFIRMED
MIN_RECALLS = 3
MIN_RELEVANCE = 0.5
#: The most proposals of facts and of habits in one run, so that one run does not fill the queue.
MAX_PROMOTED = 3
MAX_PATTERNS = 2
# Seed 000, insights: the least size of a cluster, and the most insights in one run. Preconscious memories: the number of
# latest heartbeats in which they were activated, and the most in one run.
MIN_CLUSTER_SIZE = 10
MAX_INSIGHTS = 5
LOOKBACK_HEARTBEATS = 5
MAX_PRECONSCIOUS = 3
#: The most proposals of traits and capabilities in one run.
MAX_TENDENCIES = 2
#: The source of these proposals.
SOURCE = "consolidation"

# Evidence is a source, or a relation to a supporting memory; the agent's own notes are none.
_FOREIGN_SOURCE = """
    EXISTS (SELECT FROM jsonb_array_elements(
        CASE jsonb_typeof({memory}.detail->'sources') WHEN 'array' THEN {memory}.detail->'sources' ELSE '[]' END
    ) listed(source) WHERE coalesce(listed.source->>'reference', '') <> 'agent:' || {memory}.agent_id)
"""
_NO_OWN_NOTE = f"""
    NOT (n.role = ANY(%(own_roles)s) OR n.role = '' AND n.source LIKE ANY(%(own_sources)s))
    OR {_FOREIGN_SOURCE.format(memory="n")}
"""

# Part: the relevance of a memory `m` with the access `c`, which fades as in `arbor.memory.forgetting`.
RELEVANCE = """
    m.importance * exp(-m.decay_rate * extract(epoch FROM now() - coalesce(c.last_at, m.created_at)) / 86400)
""".strip()

# Part: a memory `m` has evidence.
EVIDENCED = f"""({_FOREIGN_SOURCE.format(memory="m")}
                OR EXISTS (SELECT FROM memories_edge e
                    JOIN memories_memory n ON n.tenant_id = e.tenant_id AND n.agent_id = e.agent_id
                        AND n.status = 'active' AND n.id = CASE e.target_id WHEN m.id THEN e.source_id ELSE e.target_id END
                    WHERE e.tenant_id = m.tenant_id AND e.agent_id = m.agent_id
                    AND (e.target_id = m.id AND e.relation = 'supports'
                        OR e.source_id = m.id AND e.relation IN ('derived_from', 'learned_from'))
                    AND ({_NO_OWN_NOTE})))"""

# Part: the calibrated threshold of a kind of proposals, or its base.
THRESHOLD_OF = """coalesce((SELECT k.threshold FROM selves_calibration k
                WHERE k.tenant_id = %(tenant)s AND k.agent_id = %(agent)s AND k.kind = {kind}), {base})"""
# Part: the kind that a memory `m` is proposed as, by the beginnings of `_SELF_OPENINGS`.
PROMOTED_AS = "CASE WHEN m.content ~ '^[[:space:]]*(I |I''m |I’m |My )' THEN 'identity' ELSE 'belief' END"
_SELF_OPENINGS = ("I ", "I'm ", "I’m ", "My ")

# Part: a memory `m` is what the agent accepted of an earlier consolidation, which is not proposed again as a part of the self.
CONCLUDED = """EXISTS (SELECT FROM selves_proposal p WHERE p.tenant_id = m.tenant_id AND p.agent_id = m.agent_id
                AND p.source = %(consolidation)s AND p.kind <> 'fact' AND m.source = 'proposal:' || p.id)"""

# Part: the agent has what a memory `m` would be proposed as, by the hash that acceptance compares.
HELD = f"""CASE {PROMOTED_AS}
                WHEN 'belief' THEN EXISTS (SELECT FROM selves_belief b WHERE b.tenant_id = m.tenant_id AND b.agent_id = m.agent_id
                    AND b.statement_hash = m.content_hash AND b.status <> 'dropped')
                ELSE EXISTS (SELECT FROM selves_identityaspect i WHERE i.tenant_id = m.tenant_id AND i.agent_id = m.agent_id
                    AND i.kind = 'self_concept' AND i.content_hash = m.content_hash AND i.status <> 'dropped') END"""  # noqa: S608 (no external input)

# Part: the clusters with half of the evidence of an earlier insight, which they would propose again under a new id. One memory
# alone may be in several clusters.
_KNOWN_CLUSTERS = """SELECT s.cluster_id FROM selves_proposal p CROSS JOIN LATERAL jsonb_array_elements_text(p.evidence) AS shared (memory)
                JOIN memories_clustermember s ON s.tenant_id = p.tenant_id AND s.memory_id = CASE
                    WHEN shared.memory ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN shared.memory::uuid END
                WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.kind = 'insight' AND jsonb_array_length(p.evidence) > 1
                GROUP BY p.id, s.cluster_id HAVING 2 * count(*) >= max(jsonb_array_length(p.evidence))"""

# Part: whether at most half of the members of a cluster `t` are what the agent accepted about its memories: they gather around
# their own fixed phrases.
_OF_OTHER_MEMORIES = """2 * (SELECT count(*) FROM memories_clustermember c
                JOIN memories_memory m ON m.tenant_id = c.tenant_id AND m.id = c.memory_id AND m.source LIKE 'proposal:%%'
                JOIN selves_proposal p ON p.tenant_id = m.tenant_id AND p.agent_id = m.agent_id AND p.source = %(consolidation)s AND p.kind <> 'fact'
                    AND m.source = 'proposal:' || p.id
                WHERE c.tenant_id = t.tenant_id AND c.cluster_id = t.id) <= t.size"""

# Stored insights have their cluster under either of two keys: the second is that of older rows.
_CANDIDATES = f"""
SELECT
    (SELECT coalesce(json_agg(memory), '[]') FROM (
        SELECT m.id, m.content, m.trust FROM memories_memory m
        JOIN memories_memoryaccess c ON c.tenant_id = m.tenant_id AND c.memory_id = m.id
        WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.type = 'semantic' AND m.status = 'active'
            AND c.count >= %(recalled)s AND m.trust >= {THRESHOLD_OF.format(kind=PROMOTED_AS, base="%(sure)s")}
            AND length(m.content) <= %(longest)s
            AND m.created_at <= now() - make_interval(days => %(days)s)
            AND {RELEVANCE} >= %(relevant)s
            AND {EVIDENCED}
            AND NOT EXISTS (SELECT FROM selves_proposal p WHERE p.tenant_id = m.tenant_id AND p.agent_id = m.agent_id
                AND p.change->>'memory' = m.id::text)
            AND NOT {CONCLUDED} AND NOT {HELD}
        ORDER BY m.trust DESC, m.importance DESC, m.id LIMIT %(most)s
    ) memory) AS memories,
    (SELECT coalesce(json_agg(action ORDER BY heartbeat_number, id), '[]') FROM (
        SELECT action, heartbeat_number, id FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
        ORDER BY heartbeat_number DESC, id DESC LIMIT %(max_actions)s
    ) latest) AS actions,
    (SELECT coalesce(json_agg(CASE WHEN outcome = 'success' THEN action END ORDER BY heartbeat_number, id), '[]') FROM (
        SELECT action, heartbeat_number, id, outcome FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
        ORDER BY heartbeat_number DESC, id DESC LIMIT %(max_actions)s
    ) latest) AS worked,
    (SELECT coalesce(json_agg(p.change->>'pattern'), '[]') FROM selves_proposal p
        WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.kind IN ('pattern', 'learning')) AS known,
    (SELECT count(*) FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s) AS experiences,
    (SELECT coalesce(json_agg(cluster), '[]') FROM (
        SELECT t.id, t.name, t.size, (SELECT coalesce(json_agg(member.memory_id), '[]') FROM (
            SELECT c.memory_id FROM memories_clustermember c WHERE c.tenant_id = t.tenant_id AND c.cluster_id = t.id
            ORDER BY c.strength DESC, c.memory_id LIMIT %(most_evidence)s
        ) member) AS members
        FROM memories_cluster t
        WHERE t.tenant_id = %(tenant)s AND t.agent_id = %(agent)s AND NOT t.stale AND t.name <> %(no_keywords)s
            AND 1 - %(cluster_size)s / 2.0 / t.size >= {THRESHOLD_OF.format(kind="'insight'", base="%(insight)s")}
            AND NOT EXISTS (SELECT FROM selves_proposal p WHERE p.tenant_id = t.tenant_id AND p.agent_id = t.agent_id
                AND coalesce(p.change->>'cluster', p.change->>'theme') = t.id::text)
            AND t.id NOT IN ({_KNOWN_CLUSTERS})
            AND {_OF_OTHER_MEMORIES}
        ORDER BY t.size DESC, t.id LIMIT %(most_insights)s
    ) cluster) AS clusters,
    (SELECT coalesce(json_agg(edge), '[]') FROM (
        SELECT m.id, m.content, x.level FROM memories_activation x
        JOIN memories_memory m ON m.tenant_id = x.tenant_id AND m.agent_id = x.agent_id AND m.id = x.memory_id
        LEFT JOIN memories_memoryaccess c ON c.tenant_id = m.tenant_id AND c.memory_id = m.id
        CROSS JOIN (SELECT min(started_at) AS began FROM (
            SELECT started_at FROM heartbeats_heartbeat
            WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'done'
            ORDER BY started_at DESC LIMIT %(lookback)s) b) since
        WHERE x.tenant_id = %(tenant)s AND x.agent_id = %(agent)s AND x.at >= since.began
            AND x.level >= {THRESHOLD_OF.format(kind="'preconscious'", base="%(edge_level)s")}
            AND m.type = 'semantic' AND m.status = 'active' AND length(m.content) <= 900
            AND (c.last_at IS NULL OR c.last_at < since.began)
            AND NOT EXISTS (SELECT FROM selves_proposal p WHERE p.tenant_id = m.tenant_id AND p.agent_id = m.agent_id
                AND (p.change->>'preconscious' = m.id::text OR p.change->>'memory' = m.id::text
                    OR p.kind <> 'fact' AND m.source = 'proposal:' || p.id))
        ORDER BY x.level DESC, m.id LIMIT %(most_preconscious)s
    ) edge) AS preconscious,
    (SELECT count(*) FROM selves_proposal WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'pending'
        AND created_at < now() - %(pending_for)s) AS overdue,
    (SELECT coalesce(json_object_agg(kind, threshold), '{{}}') FROM selves_calibration
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND kind IN ('pattern', 'learning')) AS thresholds,
    (SELECT learned FROM agents_agentstate WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s) AS learned,
    (SELECT coalesce(json_agg(json_build_array(kind, content, strength, status)), '[]') FROM selves_identityaspect
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND kind IN ('trait', 'capability')) AS qualities,
    (SELECT coalesce(json_agg(p.change->>'tendency'), '[]') FROM selves_proposal p
        WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.kind = 'identity' AND p.change ? 'tendency'
    ) AS known_tendencies
"""  # noqa: S608 (no external input)


@dataclass(frozen=True, kw_only=True)
class ConsolidationResult:
    """The result of a run: proposals, and deleted experiences."""

    proposed: ProposalResult
    deleted_experiences: int = 0


class _PromotionCandidates(NamedTuple):
    """The columns of `_CANDIDATES`, in their order."""

    memories: list[dict[str, Any]]
    #: The actions of the latest experiences, and the same ones with null for those that did not succeed.
    actions: list[str]
    worked: list[str | None]
    #: The keys of the patterns that were proposed before.
    known: list[str]
    experiences: int
    clusters: list[dict[str, Any]]
    preconscious: list[dict[str, Any]]
    overdue: int
    thresholds: dict[str, float]
    #: Packed: the attempts and successes of each action.
    learned: bytes | None
    #: The traits and capabilities that the agent has or had: (kind, content, strength, status).
    qualities: Sequence[Sequence[Any]]
    #: The keys of all tendencies that were proposed before, rejected ones too.
    known_tendencies: list[str]


def propose_settled_changes(*, agent_id: UUID) -> ConsolidationResult:
    """Propose an agent's established facts, habits, clusters and preconscious memories. One statement if there are none.

    A fact about the agent itself is proposed as an aspect, another fact as a belief; a habit as a pattern, or as a learning
    if it always succeeded; what actions show of the agent as a trait or capability; a large cluster as an insight; a memory that
    was activated without a recall as preconscious. Expires proposals that have been pending for too long.
    """
    found = _read_candidates(agent_id)
    expired = expire_overdue(agent_id=agent_id) if found.overdue else ()
    proposals = [
        *(_promotion(memory) for memory in found.memories),
        *islice(_habits(found), MAX_PATTERNS),
        *_tendencies(found),
        *(_insight(cluster) for cluster in found.clusters),
        *(_preconscious(memory) for memory in found.preconscious),
    ]
    deleted = delete_oldest_experiences(agent_id=agent_id) if found.experiences > MAX_EXPERIENCES else 0
    proposed = propose(agent_id=agent_id, proposals=proposals)
    return ConsolidationResult(
        proposed=replace(proposed, expired=(*expired, *proposed.expired)), deleted_experiences=deleted
    )


def condition_values() -> dict[str, Any]:
    """Return the parameters of the conditions of a promotion."""
    return {
        "recalled": MIN_RECALLS,
        "sure": MIN_TRUST,
        "days": MIN_AGE_DAYS,
        "relevant": MIN_RELEVANCE,
        "longest": TEXT_LENGTH,
        "own_roles": list(OWN_ROLES),
        "own_sources": [f"{beginning}%" for beginning in OWN_SOURCES],
        "consolidation": SOURCE,
    }


def _read_candidates(agent_id: UUID) -> _PromotionCandidates:
    (row,) = fetch(
        _CANDIDATES,
        agent=agent_id,
        most=MAX_PROMOTED,
        max_actions=MAX_ACTIONS_READ,
        cluster_size=MIN_CLUSTER_SIZE,
        insight=THRESHOLDS[ProposalKind.INSIGHT].base,
        most_insights=MAX_INSIGHTS,
        no_keywords=NO_KEYWORDS,
        lookback=LOOKBACK_HEARTBEATS,
        edge_level=EDGE_OF_MIND,
        most_preconscious=MAX_PRECONSCIOUS,
        pending_for=PENDING_FOR,
        most_evidence=MAX_EVIDENCE,
        **condition_values(),
    )
    return _PromotionCandidates(*row)


def _habits(found: _PromotionCandidates) -> Iterator[NewProposal]:
    """Yield proposals of the new habits that reach the threshold of their kind."""
    successes = {pattern.key: pattern.count for pattern in patterns(found.worked)}
    habits = [pattern for pattern in patterns(found.actions) if pattern.key not in found.known]
    for habit in habits:
        proposal = _habit(habit, always_worked=successes.get(habit.key, 0) >= habit.count)
        if proposal.confidence >= found.thresholds.get(proposal.kind, THRESHOLDS[proposal.kind].base):
            yield proposal


def _habit(habit: Pattern, *, always_worked: bool) -> NewProposal:
    """Propose a habit as a pattern, or as a learning where it always succeeded."""
    return NewProposal(
        kind=ProposalKind.LEARNING if always_worked else ProposalKind.PATTERN,
        content=habit.describe(always_worked=always_worked),
        confidence=habit.confidence,
        source=SOURCE,
        change={"pattern": habit.key},
    )


def _tendencies(found: _PromotionCandidates) -> list[NewProposal]:
    """Propose the surest traits and capabilities that are new to the agent, or have another strength now.

    A trait or capability that was dropped is not proposed again.
    """
    existing: defaultdict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for kind, content, strength, status in found.qualities:
        existing[kind, _name_key(content)].append((strength, status))
    new = [
        tendency
        for tendency in tendencies(found.actions, unpack(found.learned) if found.learned else {})
        if tendency.key not in found.known_tendencies
        and _is_news(tendency, existing[tendency.kind, _name_key(tendency.name)])
    ]
    return [
        NewProposal(
            kind=ProposalKind.IDENTITY,
            content=tendency.name,
            confidence=tendency.confidence,
            source=SOURCE,
            change={
                "aspect": tendency.kind.value,
                "strength": tendency.strength,
                "tendency": tendency.key,
            },
        )
        for tendency in new[:MAX_TENDENCIES]
    ]


def _name_key(name: str) -> str:
    """Return a text that is equal for names that differ only in case or white space."""
    return " ".join(name.casefold().split())


def _is_news(tendency: Tendency, existing: Sequence[tuple[float, str]]) -> bool:
    return all(
        status != BeliefStatus.DROPPED and is_another_strength(strength, tendency.strength)
        for strength, status in existing
    )


def _insight(cluster: dict[str, Any]) -> NewProposal:
    return NewProposal(
        kind=ProposalKind.INSIGHT,
        content=f"My memories gather around {cluster['name']}: {cluster['size']} of them belong to it.",
        # 0.5 for the smallest cluster, towards 1 for large ones.
        confidence=round(1 - MIN_CLUSTER_SIZE / 2 / cluster["size"], 3),
        source=SOURCE,
        change={"cluster": cluster["id"]},
        evidence=cluster["members"],
    )


def _preconscious(memory: dict[str, Any]) -> NewProposal:
    return NewProposal(
        kind=ProposalKind.PRECONSCIOUS,
        content=shorten_proposal(f"This has been at the edge of my mind: {memory['content']}"),
        confidence=round(min(memory["level"], 1.0), 3),
        source=SOURCE,
        change={"preconscious": memory["id"]},
        evidence=[memory["id"]],
    )


def _promotion(memory: dict[str, Any]) -> NewProposal:
    of_itself = memory["content"].lstrip().startswith(_SELF_OPENINGS)
    return NewProposal(
        kind=ProposalKind.IDENTITY if of_itself else ProposalKind.BELIEF,
        content=shorten_proposal(memory["content"]),
        confidence=memory["trust"],
        source=SOURCE,
        change={
            "memory": memory["id"],
            **(
                {"aspect": AspectKind.SELF_CONCEPT.value}
                if of_itself
                else {"category": BeliefCategory.WORLD.value}
            ),
        },
        evidence=[memory["id"]],
    )


def delete_oldest_experiences(*, agent_id: UUID) -> int:
    """Delete an agent's oldest experiences above the limit, audited; return their number. One statement if there are none."""
    of_agent = Experience.objects.filter(agent_id=agent_id)
    latest = of_agent.order_by("-heartbeat_number", "-id").values("id")[:MAX_EXPERIENCES]
    deleted, _ = of_agent.exclude(id__in=latest).delete()
    if deleted:
        oldest = "oldest experience" if deleted == 1 else f"{deleted:,} oldest experiences"
        record(
            action=AuditAction.TRUNCATED,
            actor="system:experiences",
            agent_id=agent_id,
            message=f"deleted the {oldest}: an agent keeps {MAX_EXPERIENCES:,}",
            detail={"experiences": deleted},
        )
    return deleted
