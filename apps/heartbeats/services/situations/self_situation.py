"""The self of an agent in situations: columns of the statement that reads a situation, and views of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps.selves.services.queries import TOO_SOON
from apps.selves.services.salience import (
    ASPECT_COLUMNS,
    BELIEF_COLUMNS,
    PREFERENCE_COLUMNS,
    SelfRows,
    choose_self,
)
from arbor.heartbeat.focus import focus_text
from arbor.heartbeat.influence import choose_lessons
from arbor.heartbeat.situation import USER_MESSAGE, Situation
from arbor.heartbeat.steps.inner_state import USER
from arbor.heartbeat.views import (
    ActionTallyView,
    ContradictionView,
    DriveView,
    ExperienceView,
    MoodView,
    PeerView,
    ProposalView,
)
from arbor.selves.drives import URGENT, Drive, read_drives, satisfy_by_contact
from arbor.selves.emotions import baseline_of, read_mood
from arbor.selves.proposals import PROPOSALS_SHOWN
from arbor.selves.trust import trust
from arbor.selves.values import ASPECTS_READ, MAX_BELIEFS, MAX_PREFERENCES

# Arbor's own limits; only PROPOSALS_SHOWN comes from the origin of seed 000.
PEERS_SHOWN = 5
CONTRADICTIONS_SHOWN = 3
#: The share of the more trusted memory's trust that the less trusted one must exceed for their contradiction to be shown; below
#: it, the more trusted one is right. A memory whose trust was halved by doubt falls below, unless the other was trusted less.
EVENLY_TRUSTED = 0.65
#: The latest experiences, which lessons are chosen from and successes are counted in.
EXPERIENCES_READ = 40

#: `a` is the agent's row, `s` its state.
SELF_COLUMNS = f"""
    s.drives, s.mood, s.learned, s.stale_heartbeats,
    (SELECT coalesce(json_agg(aspect), '[]') FROM (
        SELECT {", ".join(ASPECT_COLUMNS)} FROM selves_identityaspect
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status <> 'dropped'
        ORDER BY stability DESC, id LIMIT %(aspects)s
    ) aspect) AS aspects,
    (SELECT string_agg(content, ' ' ORDER BY id) FROM selves_identityaspect
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status = 'held' AND kind = 'emotional_baseline'
    ) AS tone,
    (SELECT coalesce(json_agg(belief), '[]') FROM (
        SELECT {", ".join(BELIEF_COLUMNS)} FROM selves_belief
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status <> 'dropped'
        ORDER BY stability + confidence DESC, id LIMIT %(beliefs)s
    ) belief) AS beliefs,
    (SELECT coalesce(json_agg(contradiction), '[]') FROM (
        (SELECT b.id::text AS belief_id, '' AS other_id, b.statement, m.id AS memory_id, m.content, e.at
        FROM selves_belief b
        JOIN selves_beliefevidence e ON e.tenant_id = b.tenant_id AND e.belief_id = b.id AND NOT e.supports
            AND (b.tested_at IS NULL OR e.at > b.tested_at)
        CROSS JOIN LATERAL (SELECT id, content FROM memories_memory
            WHERE tenant_id = e.tenant_id AND id = e.memory_id AND status = 'active' LIMIT 1) m
        WHERE b.tenant_id = a.tenant_id AND b.agent_id = a.id AND b.status <> 'dropped'
        ORDER BY e.at DESC, b.id, m.id LIMIT %(contradictions)s)
        UNION ALL
        (SELECT '', other.id::text, other.content, m.id, m.content, e.created_at
        FROM memories_edge e
        CROSS JOIN LATERAL (SELECT id, content, trust FROM memories_memory
            WHERE tenant_id = e.tenant_id AND id = e.source_id AND status = 'active' LIMIT 1) m
        CROSS JOIN LATERAL (SELECT id, content, trust FROM memories_memory
            WHERE tenant_id = e.tenant_id AND id = e.target_id AND status = 'active' LIMIT 1) other
        WHERE e.tenant_id = a.tenant_id AND e.agent_id = a.id AND e.relation = 'contradicts'
            AND e.source_kind = 'memory' AND e.target_kind = 'memory'
            AND least(m.trust, other.trust) > %(evenly_trusted)s * greatest(m.trust, other.trust)
        ORDER BY e.created_at DESC, e.id LIMIT %(contradictions)s)
        ORDER BY at DESC, belief_id, other_id, memory_id LIMIT %(contradictions)s
    ) contradiction) AS contradictions,
    (SELECT coalesce(json_agg(proposal), '[]') FROM (
        SELECT id, kind, coalesce(change->>'aspect', '') AS aspect, content, confidence, deferrals, jsonb_array_length(evidence) AS evidence,
            created_at AS at
        FROM selves_proposal p
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status = 'pending' AND NOT ({TOO_SOON})
        ORDER BY confidence DESC, created_at, id LIMIT %(proposals)s
    ) proposal) AS proposals,
    (SELECT coalesce(json_agg(preference), '[]') FROM (
        SELECT {", ".join(PREFERENCE_COLUMNS)} FROM selves_preference
        WHERE tenant_id = a.tenant_id AND agent_id = a.id ORDER BY key LIMIT %(preferences)s
    ) preference) AS preferences,
    (SELECT coalesce(json_agg(boundary), '[]') FROM (
        SELECT name, description, type, patterns, examples, vectors, response, flexibility, importance, enabled
        FROM selves_boundary WHERE tenant_id = a.tenant_id AND agent_id = a.id ORDER BY name
    ) boundary) AS boundaries,
    (SELECT coalesce(json_agg(experience), '[]') FROM (
        SELECT action, left(about, 200) AS about, outcome, lesson, heartbeat_number FROM selves_experience
        WHERE tenant_id = a.tenant_id AND agent_id = a.id ORDER BY heartbeat_number DESC, id LIMIT %(experiences_read)s
    ) experience) AS experiences,
    (SELECT coalesce(json_agg(peer), '[]') FROM (
        SELECT name, peer_id, competence, reliability, interests, interactions, successes, last_heartbeat_number,
            peer_id IN (SELECT w.peer_id FROM heartbeats_percept w
                WHERE w.tenant_id = a.tenant_id AND w.agent_id = a.id AND w.heartbeat_id IS NULL
            ) IS TRUE AS present
        FROM selves_peermodel WHERE tenant_id = a.tenant_id AND agent_id = a.id
        ORDER BY present DESC, last_at DESC NULLS LAST, name LIMIT %(peers)s
    ) peer) AS peers
"""  # noqa: S608 (no external input)


def self_values() -> dict[str, Any]:
    """Return the parameters of SELF_COLUMNS."""
    return {
        "aspects": ASPECTS_READ,
        "beliefs": MAX_BELIEFS,
        "contradictions": CONTRADICTIONS_SHOWN,
        "evenly_trusted": EVENLY_TRUSTED,
        "proposals": PROPOSALS_SHOWN,
        "preferences": MAX_PREFERENCES,
        "experiences_read": EXPERIENCES_READ,
        "peers": PEERS_SHOWN,
    }


def view_self(columns: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return the situation's fields about the self by name, from the columns of the situation."""
    drives = satisfy_by_contact(read_drives(columns["drives"], now), columns["last_user_contact_at"])
    levels = {drive: drives.level(drive, now) for drive in Drive}
    mood = read_mood(columns["mood"], baseline=baseline_of([columns["tone"] or ""]), now=now)
    return {
        "drives": [
            DriveView(name=drive, level=level, urgent=level >= URGENT) for drive, level in levels.items()
        ],
        "mood": MoodView(valence=mood.valence, arousal=mood.arousal),
        "stale_heartbeats": columns["stale_heartbeats"],
        "capabilities": [
            ActionTallyView(action=action, attempts=attempts, successes=successes)
            for action, (attempts, successes) in sorted((columns["learned"] or {}).items())
        ],
        "contradictions": [ContradictionView.model_validate(row) for row in columns["contradictions"]],
        "proposals": [ProposalView.model_validate(row) for row in columns["proposals"]],
        "experiences": choose_lessons([ExperienceView.model_validate(row) for row in columns["experiences"]]),
        "peers": [_peer(row, columns) for row in columns["peers"]],
    }


def view_identity(columns: Mapping[str, Any], *, about: str, now: datetime) -> dict[str, Any]:
    """Return the situation's aspects, beliefs and preferences by name: those that suit a text best."""
    rows = SelfRows(
        aspects=columns["aspects"], beliefs=columns["beliefs"], preferences=columns["preferences"]
    )
    return choose_self(rows, about=about, now=now)


def with_identity(situation: Situation, columns: Mapping[str, Any]) -> Situation:
    """Return a situation with the parts of the identity that concern its percepts and its focus."""
    about = " ".join([focus_text(situation), *(percept.content for percept in situation.percepts)])
    return situation.model_copy(update=view_identity(columns, about=about, now=situation.environment.now))


def _peer(row: Mapping[str, Any], columns: Mapping[str, Any]) -> PeerView:
    kinds = {percept["kind"] for percept in columns["percepts"]}
    return PeerView(
        name=row["name"],
        peer_id=row["peer_id"] or "",
        present=row["present"] or (row["peer_id"] is None and row["name"] == USER and USER_MESSAGE in kinds),
        trust=trust(
            successes=row["successes"],
            interactions=row["interactions"],
            heartbeat_number=columns["heartbeats"] + 1,
            last_heartbeat_number=row["last_heartbeat_number"],
        ),
        competence=row["competence"],
        reliability=row["reliability"],
        interests=row["interests"],
        interactions=row["interactions"],
    )
