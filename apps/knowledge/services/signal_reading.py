"""Read the signals that agents are subscribed to, each signal once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from apps.signals.services.reading import match_names
from apps.tenants.packing import unpack_list
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid
from arbor.heartbeat.views import SubscribedSignal
from arbor.knowledge.subscriptions import SHARED, ReadSignal, coalesce

#: Batches of signals that one prompt reads for a subscription at most; the next prompt continues after them.
MAX_BATCHES = 200
#: After this many batches without a wanted signal, the position is written too, so that they are not read again.
_UNWANTED_BATCHES = 50

_COLUMN = """(
    SELECT json_agg(json_build_array(u.id, u.source_id, o.name, u.names, u.position) ORDER BY u.id)
    FROM knowledge_signalsubscription u
    LEFT JOIN agents_agent o ON o.tenant_id = u.tenant_id AND o.id = u.source_id
    WHERE u.tenant_id = {tenant} AND u.agent_id = {agent}
)"""
# Signals about what the agents share have no agent.
_READ = """
SELECT w.subscription, s.id, s.at, s.signals
FROM (SELECT signals_horizon() AS horizon) h
CROSS JOIN unnest(%(subscriptions)s::uuid[], %(sources)s::uuid[], %(positions)s::uuid[]) AS w (subscription, source, position)
CROSS JOIN LATERAL (
    SELECT id, at, signals FROM (
        (SELECT id, at, signals FROM signals_signalbatch
        WHERE tenant_id = %(tenant)s AND agent_id = w.source AND id > w.position AND id < h.horizon
        ORDER BY id LIMIT %(most)s)
        UNION ALL
        (SELECT id, at, signals FROM signals_signalbatch
        WHERE tenant_id = %(tenant)s AND agent_id IS NULL AND w.source = %(shared)s AND id > w.position AND id < h.horizon
        ORDER BY id LIMIT %(most)s)
    ) found ORDER BY id LIMIT %(most)s
) s
ORDER BY w.subscription, s.id
"""
# Positions never go back, because a heartbeat whose agent another worker has by now may write late.
_ADVANCE = """
UPDATE knowledge_signalsubscription u SET position = r.position
FROM unnest(%(subscriptions)s::uuid[], %(positions)s::uuid[]) AS r (id, position)
WHERE u.tenant_id = %(tenant)s AND u.id = r.id AND u.position < r.position
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingSignals:
    """The signals for an agent's next prompt, and the positions of its subscriptions after them, by source and id."""

    signals: list[SubscribedSignal] = field(default_factory=list)
    positions: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Subscription:
    """A subscription of an agent, from its column."""

    agent_id: UUID
    source: str
    names: frozenset[str]


def subscriptions_column(*, tenant: str, agent: str) -> str:
    """Return the column of an agent's subscriptions, null without any; the arguments are SQL."""
    return _COLUMN.format(tenant=tenant, agent=agent)


def pending_signals(columns: Mapping[UUID, Sequence[Any] | None]) -> dict[UUID, PendingSignals]:
    """Return the signals since the last prompts of agents, coalesced; `columns` has the subscriptions column of each agent.

    One statement; none where no agent has a subscription.
    """
    subscriptions: dict[UUID, _Subscription] = {}
    reads: list[tuple[UUID, UUID, UUID]] = []
    for agent_id, column in columns.items():
        for row_id, source_id, source_name, names, position in column or ():
            subscription_id = UUID(row_id)
            reads.append((subscription_id, UUID(source_id) if source_id else SHARED, UUID(position)))
            subscriptions[subscription_id] = _Subscription(
                agent_id=agent_id,
                source="you" if source_id == str(agent_id) else source_name or "",
                names=wanted_names(tuple(names)),
            )
    if not reads:
        return {}
    ids, sources, positions = (list(values) for values in zip(*reads, strict=True))
    rows = fetch(
        _READ, subscriptions=ids, sources=sources, positions=positions, shared=SHARED, most=MAX_BATCHES
    )
    return _by_agent(rows, subscriptions)


def advance_positions(positions: Sequence[tuple[UUID, UUID]]) -> None:
    """Write the positions (subscription, position) after signals that agents have read, in the open transaction."""
    if positions:
        subscriptions, after = (list(values) for values in zip(*positions, strict=True))
        change(_ADVANCE, subscriptions=subscriptions, positions=after)


@lru_cache(maxsize=1000)
def wanted_names(patterns: tuple[str, ...]) -> frozenset[str]:
    """Return the names of signals that patterns match; a pattern of another version of Arbor may match none."""
    found: set[str] = set()
    for pattern in patterns:
        try:
            found.update(match_names(pattern))
        except Invalid:
            continue
    return frozenset(found)


def _by_agent(
    rows: Sequence[tuple[Any, ...]], subscriptions: Mapping[UUID, _Subscription]
) -> dict[UUID, PendingSignals]:
    """Return the wanted signals of the rows and the new positions, by agent."""
    # Two subscriptions of an agent may find the same signal, which counts once.
    found: dict[UUID, dict[tuple[UUID, int], ReadSignal]] = defaultdict(dict)
    positions: dict[UUID, dict[str, dict[str, str]]] = defaultdict(dict)
    unwanted: dict[UUID, int] = defaultdict(int)
    for subscription_id, row_id, at, packed in rows:
        subscription = subscriptions[subscription_id]
        wanted = [
            (number, ReadSignal(name=name, source=subscription.source, at=at, data=data))
            for number, (name, data) in enumerate(unpack_list(bytes(packed)))
            if name in subscription.names
        ]
        unwanted[subscription_id] = 0 if wanted else unwanted[subscription_id] + 1
        if wanted or unwanted[subscription_id] >= _UNWANTED_BATCHES:
            after = positions[subscription.agent_id].setdefault(subscription.source, {})
            after[str(subscription_id)] = str(row_id)
        for number, signal in wanted:
            found[subscription.agent_id][row_id, number] = signal
    return {
        agent_id: PendingSignals(
            signals=[
                SubscribedSignal(
                    name=entry.name,
                    source=entry.source,
                    count=entry.count,
                    at=entry.at,
                    subjects=list(entry.subjects),
                )
                for entry in coalesce(found[agent_id].values())
            ],
            positions=positions[agent_id],
        )
        for agent_id in found.keys() | positions.keys()
    }
