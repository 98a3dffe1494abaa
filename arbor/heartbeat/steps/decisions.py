"""Decide about proposed actions, sign those that run, and embed their texts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from arbor.contacts.cooldown import refusals
from arbor.heartbeat.decision import DecisionLimits, texts_to_check, texts_to_search, texts_to_store
from arbor.heartbeat.decision import decide as decide_actions
from arbor.heartbeat.focus import consolidation_refusals
from arbor.heartbeat.guards import (
    apply_boundaries,
    apply_boundaries_to_reply,
    apply_reflexes,
    dropped_at_boundaries,
)
from arbor.heartbeat.needs import Embedding
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.authority import (
    apply_trust,
    approved_action,
    approved_requests,
    check_grants,
    sign,
)
from arbor.pipeline.engine import NodeResult, Steps
from arbor.selves.boundary_check import Vector
from arbor.values import replace


def decide(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Decide about approved actions and those of the reply, and sign the requests of those that run."""
    environment = heartbeat.situation.environment
    too_soon = refusals(
        hours_since_reach_out=environment.hours_since_reach_out,
        hours_since_user=environment.hours_since_user,
        public_today=environment.published_today,
        limits=heartbeat.rules.contact_limits,
    )
    approved = approved_requests(heartbeat)
    limits = DecisionLimits(
        allowed=[*heartbeat.allowed, *heartbeat.missing],
        energy=heartbeat.energy,
        budget=heartbeat.budget,
        missing=heartbeat.missing,
        tools=heartbeat.situation.tools,
        # The index of an action is unique in its heartbeat.
        first=len(heartbeat.earlier.action_records),
        cooling={**consolidation_refusals(heartbeat.situation), **too_soon},
        reflexes=partial(apply_reflexes, terms=heartbeat.rules.reflexes),
        boundaries=partial(apply_boundaries, boundaries=heartbeat.boundaries, vectors={}),
        authorization=partial(check_grants, heartbeat),
        approved=[str(request.id) for request in approved],
        trust=partial(apply_trust, heartbeat),
    )
    proposed = [*map(approved_action, approved), *heartbeat.reply_or_empty.actions]
    decisions = decide_actions(proposed, limits)
    signed = sign(heartbeat, decisions)
    heartbeat = replace(heartbeat, decisions=list(decisions), signed=signed)
    return NodeResult(state=_check_reply(heartbeat, vectors=None))


def embed(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Embed the queries, stored and outward texts of decisions, and check decisions and notes against boundaries by meaning."""
    searched = texts_to_search(heartbeat.decisions)
    stored = texts_to_store(heartbeat.decisions, heartbeat.reply_or_empty)
    # Outward texts are embedded for the boundary check only.
    checked = [
        text for text in texts_to_check(heartbeat.decisions) if text not in searched and text not in stored
    ]
    new_vectors: Mapping[str, Vector] = {}
    if searched or stored or checked:
        new_vectors = yield Embedding(
            model=heartbeat.embedding_model,
            queries=searched,
            plain=checked,
            stored=stored,
            boundaries=heartbeat.selfhood.boundaries,
        )
    # Includes vectors of notes of earlier round trips, which are stored at the end.
    vectors = {
        **heartbeat.vectors,
        **{text: list(new_vectors[text]) for text in (*searched, *stored) if text in new_vectors},
    }
    # A boundary can match by meaning only once the vectors are there; a refused action costs nothing.
    known = {**new_vectors, **vectors}
    checked_decisions = [
        apply_boundaries(decision, heartbeat.boundaries, known) for decision in heartbeat.decisions
    ]
    heartbeat = replace(heartbeat, vectors=vectors, decisions=checked_decisions)
    return NodeResult(state=_check_reply(heartbeat, vectors=known) if known else heartbeat)


def _check_reply(heartbeat: HeartbeatState, *, vectors: Mapping[str, Vector] | None) -> HeartbeatState:
    """Return the state with the reply's items checked against the boundaries, and the dropped ones recorded."""
    reply, matches = apply_boundaries_to_reply(heartbeat.reply_or_empty, heartbeat.boundaries, vectors)
    # The check by meaning repeats accepted matches by words, which are recorded already.
    new = [match for match in matches if match.reason or match not in heartbeat.boundary_matches]
    if not new:
        return heartbeat
    return replace(
        heartbeat.with_dropped(dropped_at_boundaries(matches)),
        reply=reply,
        boundary_matches=[*heartbeat.boundary_matches, *new],
    )
