"""Load the situations of agents, one statement for all agents of a batch, and the full state of one agent."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from apps.agents.models import Agent
from apps.agents.services.energy import energy_terms
from apps.agents.services.sealed_percepts import SEALED_COLUMN, close_percepts
from apps.authority.services.explanations import action_names
from apps.authority.services.precedents import DECISIONS_COLUMN, decision_values
from apps.contacts.services.queries import PUBLICATIONS_COLUMN, PUBLISHED_COLUMN
from apps.default_model import default_model
from apps.goals.services.queries import PAST_ATTEMPTS
from apps.heartbeats.services.situations.goal_situation import CIRCUMSTANCE_COLUMNS, GOAL_COLUMNS, goal_values
from apps.heartbeats.services.situations.recent_activity import RECENT_ACTIVITY, recent_activity_values
from apps.heartbeats.services.situations.self_situation import (
    SELF_COLUMNS,
    self_values,
    view_identity,
    view_self,
)
from apps.knowledge.services.signal_reading import subscriptions_column
from apps.knowledge.services.skill_texts import skills_column
from apps.memories.services.recall import queries
from apps.memories.services.recall.activation import cluster_values
from apps.tenants.packing import unpack
from apps.tenants.scope import current_tenant
from apps.tenants.statements import run
from apps.workflows.services.queries import (
    DELEGATIONS_COLUMN,
    STEP_RESULTS_COLUMN,
    WAITING_STEP_COLUMN,
    step_values,
)
from arbor.agents.energy import EnergyTerms
from arbor.agents.genome import AgentGenome
from arbor.agents.lifecycle import REACHABLE, AgentStatus
from arbor.errors import NotFound
from arbor.heartbeat.goal_situation import view_goals
from arbor.heartbeat.prompts.sections.moment import SHOWN_PERCEPTS
from arbor.heartbeat.situation import PerceptView
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.runtime import LoadedAgent

#: Seed 004, 5.1: the last five events.
RECENT_SHOWN = 5
#: Names of other agents, the first of many.
OTHER_AGENTS_SHOWN = 12
#: The latest texts for people that are read, each with what became of it.
PUBLICATIONS_READ = 12
#: Characters quoted of the message that a user answers.
QUOTED = 200
#: Columns that are stored packed.
_PACKED = ("working_memory", "drives", "mood", "learned")

# Read as json, which psycopg parses; Django registers no loader for jsonb. `occurred_at < 'infinity'` is true of every memory: it
# leads the planner to the index by time. Without it, the planner reads and sorts all memories where it expects few.
_SITUATIONS = f"""
SELECT a.id, a.name, a.public_id, coalesce(nullif(a.model, ''), t.default_model) AS model, a.character::text, a.genome::text, t.slug AS tenant,
    (SELECT json_object_agg(model, ratio) FROM calls_tokenratio WHERE tenant_id = %(tenant)s) AS token_ratios,
    (SELECT coalesce(json_agg(tool ORDER BY tool.server, tool.name), '[]') FROM (
        SELECT d.id, v.name AS server, d.name, d.description, d.schema, d.fingerprint, d.status, d.cost
        FROM tools_tool d JOIN tools_toolserver v ON v.tenant_id = d.tenant_id AND v.id = d.server_id
        WHERE d.tenant_id = %(tenant)s AND d.status <> 'off'
    ) tool) AS tools,
    s.energy, s.bonus_actions, s.ticks_left, p.budget, p.allowance, p.energy::json AS energy_policy, t.energy::json AS tenant_energy, p.tier_models::json, p.follow_ups, p.voices, s.beats, s.last_beat_at, s.working_memory, s.last_user_contact_at,
    {GOAL_COLUMNS},
    {CIRCUMSTANCE_COLUMNS},
    {PUBLISHED_COLUMN},
    {PUBLICATIONS_COLUMN},
    {PAST_ATTEMPTS},
    {DECISIONS_COLUMN},
    {DELEGATIONS_COLUMN},
    {STEP_RESULTS_COLUMN},
    {WAITING_STEP_COLUMN},
    {RECENT_ACTIVITY},
    CASE WHEN waiting.percepts = 0 THEN '[]' ELSE (SELECT json_agg(percept ORDER BY percept.at) FROM (
        SELECT w.id, w.kind, w.content, w.at, w.urgent, coalesce(o.name, '') AS peer, coalesce(o.id::text, '') AS peer_id,
            CASE WHEN w.kind NOT IN ('user_message', 'peer_message') THEN w.detail ELSE '{{}}' END AS detail, coalesce((
                SELECT left(coalesce(nullif(m.subject, ''), m.content), %(quoted)s) FROM contacts_outboxmessage m
                WHERE m.tenant_id = w.tenant_id AND m.id = CASE WHEN w.kind = 'user_message' THEN (w.detail->>'message')::uuid END
            ), '') AS answers,
            {SEALED_COLUMN} AS sealed
        FROM heartbeats_percept w LEFT JOIN agents_agent o ON o.tenant_id = w.tenant_id AND o.id = w.peer_id
        WHERE w.tenant_id = a.tenant_id AND w.agent_id = a.id AND w.heartbeat_id IS NULL
        ORDER BY w.kind = 'user_message' DESC, w.urgent DESC, w.at LIMIT %(percepts)s
    ) percept) END AS percepts,
    least(waiting.user_messages, %(percepts)s + 1) AS user_messages,
    (SELECT coalesce(json_agg(memory ORDER BY memory.at), '[]') FROM (
        SELECT id, type, content, role, occurred_at AS at, importance, trust, ({queries.RECALLED_DETAIL})::json AS detail
        FROM memories_memory m
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status = 'active' AND type = 'episodic'
            AND (episode_id IS NULL OR sequence > 0) AND (expires_at IS NULL OR expires_at > now()) AND occurred_at < 'infinity'
        ORDER BY occurred_at DESC LIMIT %(recent)s
    ) memory) AS recent,
    {SELF_COLUMNS},
    EXISTS (SELECT FROM contacts_channel c WHERE c.tenant_id = a.tenant_id AND c.audience = 'public' AND c.enabled
        AND (c.agent_id = a.id OR c.agent_id IS NULL)
    ) AS has_public_channel,
    CASE WHEN a.id = ANY(%(writing)s::uuid[]) THEN (
        SELECT coalesce(json_agg(other.name), '[]') FROM (
            SELECT o.name FROM agents_agent o
            WHERE o.tenant_id = a.tenant_id AND o.id <> a.id AND o.status = ANY(%(reachable)s)
                AND EXISTS (SELECT FROM agents_agentendorsement e WHERE e.tenant_id = a.tenant_id AND e.agent_id = o.id AND e.status = 'active')
            ORDER BY o.name LIMIT %(other_agents)s
        ) other
    ) ELSE '[]' END AS other_agents,
    (SELECT count(*) FROM memories_bufferitem b
        WHERE b.tenant_id = a.tenant_id AND b.agent_id = a.id AND b.expires_at > now() AND b.promoted_to_id IS NULL
    ) AS held,
    (SELECT to_json(mind) FROM (
        SELECT embedding_model AS name, embedding_dimension AS dimension FROM memories_mind
        WHERE tenant_id = a.tenant_id AND agent_id = a.id
    ) mind) AS mind,
    (SELECT to_json(beat) FROM (
        SELECT number, mode, narrative, actions, emotional_valence FROM heartbeats_heartbeat
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status = 'done' ORDER BY started_at DESC LIMIT 1
    ) beat) AS last_beat,
    (SELECT coalesce(json_agg(cluster), '[]') FROM ({queries.ACTIVE_CLUSTERS}) cluster) AS clusters,
    {skills_column(tenant="a.tenant_id", agent="a.id")} AS skills,
    {subscriptions_column(tenant="a.tenant_id", agent="a.id")} AS subscriptions
FROM agents_agent a
JOIN agents_agentstate s ON s.tenant_id = a.tenant_id AND s.agent_id = a.id
JOIN tenants_tenant t ON t.id = a.tenant_id
LEFT JOIN agents_agentpolicy p ON p.tenant_id = a.tenant_id AND p.agent_id = a.id
LEFT JOIN LATERAL (
    SELECT interval_s, paused_until FROM heartbeats_heartbeatschedule
    WHERE tenant_id = a.tenant_id AND agent_id = a.id LIMIT 1
) schedule ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS percepts, count(*) FILTER (WHERE kind = 'user_message') AS user_messages FROM (
        SELECT kind FROM heartbeats_percept WHERE tenant_id = a.tenant_id AND agent_id = a.id AND heartbeat_id IS NULL
        ORDER BY kind = 'user_message' DESC LIMIT %(activity_counted)s
    ) percept
) waiting
WHERE a.tenant_id = %(tenant)s AND a.id = ANY(%(agents)s::uuid[])
"""  # noqa: S608 (no external input)
# Shared parts name one agent by a parameter; here it is the agent of the row.
_SITUATIONS = _SITUATIONS.replace("%(agent)s", "s.agent_id")


def load_situations(
    agent_ids: Collection[UUID],
    *,
    writing: Collection[UUID] = (),
    publishing: Collection[UUID] = (),
    delegating: Collection[UUID] = (),
    answering: Collection[UUID] = (),
) -> dict[UUID, dict[str, Any]]:
    """Return the columns of each agent's situation by name: state, self, goals, percepts, memories, clusters.

    One statement. Some columns are read for some of the agents only: the names of other agents for `writing`, the number of
    publications for `publishing`, the latest texts and outputs of steps for either, delegated steps for `delegating`, and
    whether a step waits for `answering`.
    """
    values = {
        "tenant": current_tenant(),
        "agents": list(agent_ids),
        "writing": list(writing),
        "publishing": list(publishing),
        "delegating": list(delegating),
        "answering": list(answering),
        "publications": PUBLICATIONS_READ,
        "percepts": SHOWN_PERCEPTS,
        "quoted": QUOTED,
        "recent": RECENT_SHOWN,
        "other_agents": OTHER_AGENTS_SHOWN,
        "reachable": sorted(REACHABLE),
        **goal_values(),
        **recent_activity_values(),
        **self_values(),
        **cluster_values(),
        **decision_values(),
        **step_values(),
    }
    return run(_SITUATIONS, values, _by_agent)


def load_situation(agent_id: UUID) -> dict[str, Any]:
    """Return the columns of one agent's situation."""
    return load_situations([agent_id])[agent_id]


def parse_genome(text: str | None) -> AgentGenome | None:
    """Parse the column `genome` of a situation; None for an agent without a genome."""
    return AgentGenome.model_validate_json(text) if text and text != "{}" else None


def _by_agent(cursor: Any) -> dict[UUID, dict[str, Any]]:
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return {agent["id"]: agent | {name: unpack(agent[name]) for name in _PACKED} for agent in rows}


def load_agent(agent_id: UUID) -> LoadedAgent:
    """Return an agent's full state. Three statements, in the tenant's open transaction; raises NotFound."""
    rows = Agent.objects.filter(id=agent_id).values_list("status", "state__nops", "state__ticks_left")
    row = rows.first()
    if row is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    status, nops, ticks_left = row
    columns, now = load_situation(agent_id), datetime.now(UTC)
    genome = parse_genome(columns["genome"])
    return LoadedAgent(
        id=agent_id,
        public_id=columns["public_id"],
        name=columns["name"],
        tenant=columns["tenant"],
        status=AgentStatus(status),
        genome=genome,
        allowed_actions=action_names(agent_id),
        model=columns["model"] or default_model(),
        energy=columns["energy"],
        energy_terms=energy_terms(tenant=columns["tenant_energy"], agent=columns["energy_policy"])
        or EnergyTerms(),
        ticks_left=ticks_left,
        beats=columns["beats"],
        nops=nops,
        working_memory=WorkingMemory.model_validate(columns["working_memory"]),
        **view_goals(columns, traits=genome.traits if genome else None, now=now),
        **view_identity(columns, about="", now=now),
        **view_self(columns, now=now),
        percepts=[PerceptView.model_validate(percept) for percept in close_percepts(columns["percepts"])],
    )
