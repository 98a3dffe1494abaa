"""Deciding: decisions about proposed actions, and vectors of their texts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from arbor.contacts.cooldown import refusals
from arbor.heartbeat.boundary_guard import dropped_at_boundaries, reply_within_boundaries, within_boundaries
from arbor.heartbeat.decision import DecisionLimits, texts_to_check, texts_to_search, texts_to_store
from arbor.heartbeat.decision import decide as decide_actions
from arbor.heartbeat.focus import not_now
from arbor.heartbeat.needs import Embedding
from arbor.heartbeat.state import Beat
from arbor.pipeline.engine import NodeResult, Steps
from arbor.selves.boundary_check import Vector
from arbor.values import replace


def decide(heartbeat: Beat) -> NodeResult[Beat]:
    """Decide about the proposed actions."""
    environment = heartbeat.situation.environment
    too_soon = refusals(
        hours_since_reach_out=environment.hours_since_reach_out,
        hours_since_user=environment.hours_since_user,
        public_today=environment.published_today,
        limits=heartbeat.rules.contact_limits,
    )
    limits = DecisionLimits(
        allowed=[*heartbeat.allowed, *heartbeat.missing],
        energy=heartbeat.energy,
        budget=heartbeat.budget,
        missing=heartbeat.missing,
        # The index of an action is unique in its heartbeat.
        first=len(heartbeat.earlier.deeds),
        cooling={**not_now(heartbeat.situation), **too_soon},
        boundaries=partial(within_boundaries, boundaries=heartbeat.boundaries, vectors={}),
    )
    decisions = decide_actions(heartbeat.said.actions, limits)
    return NodeResult(state=_within(replace(heartbeat, decisions=list(decisions)), vectors=None))


def embed(heartbeat: Beat) -> Steps[Beat]:
    """Embed queries and stored texts, and check them against the boundaries by meaning."""
    searched = texts_to_search(heartbeat.decisions)
    stored = texts_to_store(heartbeat.decisions, heartbeat.said)
    # Outward texts are embedded for the boundary check only.
    checked = [
        text for text in texts_to_check(heartbeat.decisions) if text not in searched and text not in stored
    ]
    found: Mapping[str, Vector] = {}
    if searched or stored or checked:
        found = yield Embedding(
            model=heartbeat.embedding_model,
            queries=searched,
            plain=checked,
            stored=stored,
            boundaries=heartbeat.selfhood.boundaries,
        )
    # Includes vectors of notes of earlier round trips, which are stored at the end.
    vectors = {
        **heartbeat.vectors,
        **{text: list(found[text]) for text in (*searched, *stored) if text in found},
    }
    # A match by meaning is found only now; a refused action costs nothing.
    known = {**found, **vectors}
    guarded = [within_boundaries(decision, heartbeat.boundaries, known) for decision in heartbeat.decisions]
    heartbeat = replace(heartbeat, vectors=vectors, decisions=guarded)
    return NodeResult(state=_within(heartbeat, vectors=known) if known else heartbeat)


def _within(heartbeat: Beat, *, vectors: Mapping[str, Vector] | None) -> Beat:
    """Return the state with the reply's items checked against the boundaries; `untaken` collects the dropped paths."""
    reply, crossings = reply_within_boundaries(
        heartbeat.said, heartbeat.boundaries, vectors, untaken=heartbeat.untaken
    )
    # Accepted matches by words are recorded already when the check by meaning finds them again.
    new = [crossing for crossing in crossings if crossing.reason or crossing not in heartbeat.crossings]
    if not new:
        return heartbeat
    dropped = dropped_at_boundaries(crossings)
    heartbeat = heartbeat.with_present(dropped=[*heartbeat.present.dropped, *dropped])
    return replace(
        heartbeat,
        reply=reply,
        untaken=[*heartbeat.untaken, *(item.path for item in dropped)],
        crossings=[*heartbeat.crossings, *new],
    )
