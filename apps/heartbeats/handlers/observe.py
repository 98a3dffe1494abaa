"""Observe and orient: what the agent sees before it decides."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings

from apps.goals.services.views import view_circumstances
from apps.heartbeats.handlers.terms import model_in, own_boundaries
from apps.heartbeats.models import Trigger
from apps.heartbeats.services.boundary_vectors import as_json, embedded, example_vectors
from apps.heartbeats.services.possible import missing_actions
from apps.heartbeats.services.pulse import presence_of
from apps.heartbeats.services.sight import see
from apps.memories.services.activation import note_recall
from apps.memories.services.buffer import search_buffer
from apps.memories.services.embedding import embed_query, embeds_here
from apps.memories.services.recall import (
    meaning_texts,
    recall_in_scope,
)
from apps.providers import default_model
from apps.selves.services.views import stored_self, view_self
from apps.tenants.encoding import from_json, to_json
from arbor.agents.character import Character, to_system_prompt
from arbor.agents.genome import AgentGenome
from arbor.clock import Clock
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import DEFAULT_BUDGET, BudgetKind, Holdings, budget_of
from arbor.heartbeat.focus import focus_text, mode_of
from arbor.heartbeat.goal_sight import view_goals
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.situation import (
    Environment,
    HeldView,
    LastBeat,
    MemoryView,
    Situation,
)
from arbor.heartbeat.turns import turns_allowed
from arbor.memory.values import Recalled
from arbor.models.handles import REFLEX
from arbor.pipeline.engine import Context, NodeResult, Phase

log = structlog.get_logger(__name__)

#: What the origin of seed 000 recalls.
RELEVANT_SHOWN = 5
#: Of what the agent holds without having decided to remember it.
HELD_SHOWN = 3
#: Agents whose system prompts a process keeps: a few KB each.
_PERSONS_KEPT = 1024
#: The session that an agent's own heartbeats form, in the order of their numbers.
BEATS_SESSION = "heartbeats"


class Observe:
    """Reads what the agent sees. Two queries: everything but recall, and how rare the words of the focus are."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Put the situation, as far as it is known without recall, into the context."""
        agent_id = UUID(context["agent_id"])
        seen = see(agent_id)
        if context.get("trigger") == Trigger.CYCLE:
            seen["budget"] = BudgetKind.TICKS.value
        genome, character = _who(to_json(seen["character"]), to_json(seen["genome"]), seen["name"])
        model = seen["model"] or default_model()
        missing = missing_actions(has_public_channel=seen["has_public_channel"])
        situation = _situation(agent_id, seen, genome, model, missing, self._clock.now())
        focus = focus_text(situation)
        meanings = meaning_texts(agent_id=agent_id, texts=[focus] if focus else [], now=self._clock.now())
        return NodeResult(
            updates={
                "situation": situation,
                "focus": {
                    "text": focus,
                    "meaning": meanings.get(focus, ""),
                    "held": seen["held"],
                    "mood": situation.mood.valence
                    if seen["mood"] and situation.mood
                    else (seen["last_beat"] or {}).get("emotional_valence"),
                },
                "pulse": seen["pulse"],
                "self": stored_self(seen),
                "circumstances": view_circumstances(seen, genome),
                # What its vectors are; none while it remembers nothing.
                "mind": seen["mind"],
                # What it may do and this installation can do; asked for the rest, it is told what is missing.
                "allowed": [name for name in seen["allowed_actions"] if name not in missing],
                "missing": {name: missing[name] for name in seen["allowed_actions"] if name in missing},
                "budget": {"kind": seen["budget"], "allowance": seen["allowance"]}
                if seen["budget"]
                else None,
                "model": model,
                # What decides about the models to ask, and how often.
                "routing": {"own": seen["model"], "tiers": seen["tier_models"] or {}},
                "turns": turns_allowed(own=seen["follow_ups"], installed=settings.ARBOR_FOLLOW_UPS),
                "character": character,
                "record": {
                    "number": situation.beat_number,
                    "energy_start": situation.energy,
                    "model": model,
                },
            }
        )


@lru_cache(maxsize=_PERSONS_KEPT)
def _who(character: str, genome: str, name: str) -> tuple[AgentGenome | None, str]:
    """Return the genome, if there is one, and the system prompt of an agent, from JSON: they last for life."""
    born_with = AgentGenome.model_validate_json(genome) if from_json(genome) else None
    described = Character.model_validate_json(character)
    return born_with, to_system_prompt(described, name=name, genome=born_with)


def _situation(
    agent_id: UUID,
    seen: dict[str, Any],
    genome: AgentGenome | None,
    model: str,
    missing: Collection[str],
    now: datetime,
) -> Situation:
    budget = budget_of(seen["budget"], seen["allowance"]) if seen["budget"] else DEFAULT_BUDGET
    held = Holdings(energy=seen["energy"], bonus_actions=seen["bonus_actions"], ticks_left=seen["ticks_left"])
    possible = [name for name in seen["allowed_actions"] if name not in missing]
    contact = seen["last_user_contact_at"]
    return Situation.model_validate(
        {
            "agent_id": str(agent_id),
            "name": seen["name"],
            "public_id": seen["public_id"],
            "tenant": seen["tenant"],
            "model_is_reflex": model.startswith(f"{REFLEX}/"),
            "beat_number": seen["beats"] + 1,
            "environment": Environment(
                now=now,
                user_waiting=seen["user_messages"] > 0,
                user_messages=seen["user_messages"],
                hours_since_user=(now - contact) / timedelta(hours=1) if contact else None,
                pending_percepts=seen["pulse"]["percepts"],
                published_today=seen["published_today"],
                **presence_of(seen["pulse"], last_contact=contact, now=now),
            ),
            "energy": budget.begin(held),
            "max_energy": budget.most(held),
            "energy_unit": budget.unit,
            "actions": ACTIONS.offers(
                possible, price=None if budget.kind is BudgetKind.ENERGY else budget.price
            ),
            **view_goals(seen, traits=genome.traits if genome else None, now=now),
            "percepts": seen["percepts"],
            "recent": seen["recent"],
            "aspects": seen["aspects"],
            "beliefs": seen["beliefs"],
            **view_self(seen, now=now),
            "working_memory": seen["working_memory"],
            "themes": seen["themes"],
            "last_beat": _last_beat(seen["last_beat"]),
        }
    )


class Focus:
    """Embeds what the beat recalls about: outside any transaction, if an embedder has to be waited for."""

    phase = Phase.OUTSIDE

    def waits(self, context: Context) -> bool:
        """Tell whether the vectors come from elsewhere than this process."""
        return not embeds_here(model_in(context))

    def run(self, context: Context) -> NodeResult:
        """Put the vector into the context, if the embedder answers."""
        focus = context["focus"]
        vector: list[float] | None = None
        tenant_id, model = UUID(context["tenant_id"]), model_in(context)
        heard = [percept.content for percept in context["situation"].percepts]
        guarded = embedded(tenant_id=tenant_id, model=model, texts=heard)
        if guarded:
            guarded |= example_vectors(tenant_id=tenant_id, model=model, own=own_boundaries(context))
        if focus["text"]:
            try:
                (found,) = embed_query(
                    tenant_id=UUID(context["tenant_id"]), texts=[focus["meaning"]], model=model_in(context)
                )
                vector = found.tolist()
            except EmbeddingFailed as error:
                # Recall by words alone is poorer, and better than no heartbeat.
                log.warning("recall_by_words_alone", agent_id=context["agent_id"], error=str(error))
        return NodeResult(updates={"focus": {**focus, "vector": vector}, "guarded": as_json(guarded)})


class Orient:
    """Recalls what bears on the focus, from memory and, if anything is held, from the buffer."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Complete the situation with memories; what the agent recalls counts as used."""
        agent_id = UUID(context["agent_id"])
        focus = context["focus"]
        found: list[Recalled] = []
        if focus["text"]:
            found = recall_in_scope(
                agent_id=agent_id,
                text=focus["text"],
                vector=focus["vector"],
                model=model_in(context),
                limit=RELEVANT_SHOWN,
                # Its own heartbeats are shown as recent ones; recalled too, they would echo from beat to beat.
                without_session=BEATS_SESSION,
                # What comes by itself is coloured by how the last beat felt; what it looks for on purpose is not.
                mood=focus.get("mood"),
            )
            note_recall(agent_id=agent_id, recalled={memory.id: memory.score for memory in found})
        held = _still_held(agent_id, focus, model_in(context))
        situation = context["situation"].model_copy(
            update={"relevant": [memory_view(memory) for memory in found], "held": held}
        )
        return NodeResult(updates={"situation": situation, "focus": None})


def _still_held(agent_id: UUID, focus: dict[str, Any], model: EmbeddingModel | None) -> list[HeldView]:
    """Return what the agent holds that bears on the focus; what it comes back to is worth keeping in the end."""
    if not focus["text"] or not focus.get("held"):
        return []
    found = search_buffer(
        agent_id=agent_id,
        text=focus["text"],
        vector=focus["vector"],
        model=model,
        limit=HELD_SHOWN,
        counts=True,
    )
    return [HeldView(content=each.content, role=each.role, at=each.held_at) for each in found]


class SelectMode:
    """Chooses what kind of heartbeat it is going to be."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the mode into the context and the situation."""
        situation: Situation = context["situation"]
        mode = mode_of(situation)
        return NodeResult(
            updates={"mode": mode.value, "situation": situation.model_copy(update={"mode": mode})}
        )


def memory_view(memory: Recalled) -> MemoryView:
    """Return a recalled memory as an agent sees it."""
    return MemoryView(
        id=str(memory.id),
        type=memory.type,
        content=memory.content,
        role=memory.role,
        at=memory.occurred_at,
        importance=memory.importance,
        score=round(memory.score, 4) if memory.terms.total else None,
    )


def _last_beat(beat: dict[str, Any] | None) -> LastBeat | None:
    if beat is None:
        return None
    outcomes = [f"{action['action']}: {action['summary']}" for action in beat["actions"]]
    return LastBeat(
        number=beat["number"], mode=Mode(beat["mode"]), narrative=beat["narrative"], outcomes=outcomes
    )
