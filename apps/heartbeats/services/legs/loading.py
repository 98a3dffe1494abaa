"""Load the heartbeats of a batch with the situations of their agents."""

from __future__ import annotations

import random
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.agents.models import Trigger
from apps.agents.services.energy import energy_terms
from apps.agents.services.sealed_percepts import RefusedMessage, open_percepts
from apps.audit.models import AuditAction
from apps.authority.services.reflexes import reflex_terms
from apps.default_model import default_model
from apps.heartbeats.services.legs.leases import resolve
from apps.heartbeats.services.legs.members import LeasedAgent, LeasedHeartbeat, LeaseToken, OpenHeartbeat
from apps.heartbeats.services.schedule import JITTER
from apps.heartbeats.services.situations.offers import startable, tools_of, with_startable
from apps.heartbeats.services.situations.opening import opening_of, situation_of
from apps.heartbeats.services.situations.recent_activity import schedule_policy_of
from apps.heartbeats.services.situations.situation import load_situations, parse_genome
from apps.knowledge.services.signal_reading import PendingSignals, pending_signals
from apps.knowledge.services.skill_texts import skill_views
from apps.memories.services.embedding.embedding import embeds_here
from apps.memories.services.store.appraisal import ttl_of, word_lists
from apps.providers import token_counters
from apps.tenants.packing import unpack_text
from apps.tenants.scope import current_tenant
from apps.web import web_missing
from arbor.agents.character import Character, to_system_prompt
from arbor.agents.genome import AgentGenome
from arbor.authority.authorization import AgentAuthority
from arbor.authority.grants import action_resource
from arbor.authority.reflexes import INQUIRIES
from arbor.authority.requests import KeySigner
from arbor.clock import Clock
from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import BudgetKind
from arbor.heartbeat.checkpoint import read_checkpoint
from arbor.heartbeat.effects import AuditNote, Effects
from arbor.heartbeat.inputs import BudgetTerms, Moment, Routing, Rules, Selfhood
from arbor.heartbeat.replies.round_trips import round_trips_allowed
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.state_merge import FoundState
from arbor.heartbeat.steps.authority import request_views
from arbor.memory.buffer import LONGEST_LIFETIME
from arbor.memory.values import Retention
from arbor.pipeline.engine import begin
from arbor.selves.self_knowledge import SelfKnowledge, self_knowledge_of
from arbor.workflows.values import COMPLETE_STEP, START_WORKFLOW

#: Agents whose system prompts a process caches, a few KB each.
_IDENTITIES_CACHED = 1024

_NO_PUBLIC_CHANNEL = (
    "no public channel is set up for you; a person can add one with"
    " `arbor contact channel add NAME --kind webhook --to URL --audience public`"
)

_NO_STEP = "no step of a workflow that is delegated to you waits for an answer"

_NO_SIGNALS = PendingSignals()

type _Columns = Mapping[str, Any]


def load_batch(
    leases: Sequence[LeaseToken], *, clock: Clock, running: Collection[UUID] = ()
) -> list[LeasedHeartbeat]:
    """Lock the leases (agent, epoch) and load the heartbeats to start or resume under them.

    Three statements; two if none starts. One more if a skill's text is not cached, and one if an agent has subscriptions.
    `running`: as in `resolve`.
    """
    members = resolve(leases, clock=clock, running=running)
    rules, now = _rules(), clock.now()
    columns = _load_columns([member.agent for member in members if member.stored is None], now)
    for member in members:
        if member.stored is None:
            state = _new_heartbeat(member, columns[member.agent.id], rules, now)
            member.checkpoint = begin(member.agent.graph, state)
        else:
            _read_stored(member, member.stored, rules, now)
    return members


def _load_columns(agents: Sequence[LeasedAgent], now: datetime) -> dict[UUID, dict[str, Any]]:
    """Read the columns of agents' situations, with `skills` as views and `subscriptions` as `PendingSignals`."""
    if not agents:
        return {}

    def permitted(*actions: str) -> list[UUID]:
        return [
            agent.id for agent in agents if any(_permits(agent.authority, now, action) for action in actions)
        ]

    columns = load_situations(
        [agent.id for agent in agents],
        writing=permitted(REACH_OUT_USER, REACH_OUT_AGENT),
        publishing=permitted(REACH_OUT_PUBLIC),
        delegating=permitted(REACH_OUT_AGENT, START_WORKFLOW),
        answering=permitted(COMPLETE_STEP),
    )
    signals = pending_signals({agent_id: row["subscriptions"] for agent_id, row in columns.items()})
    skills = skill_views(row["skills"] for row in columns.values())
    for (agent_id, row), views in zip(columns.items(), skills, strict=True):
        row.update(skills=views, subscriptions=signals.get(agent_id, _NO_SIGNALS))
    return columns


def _rules() -> Rules:
    return Rules(
        reflect_every=settings.ARBOR_REFLECT_EVERY,
        reflect_pause=settings.ARBOR_REFLECT_PAUSE,
        model_context=settings.ARBOR_MODEL_CONTEXT,
        reply_tokens=settings.ARBOR_MODEL_MAX_TOKENS,
        tier_models=settings.ARBOR_TIER_MODELS,
        default_model=default_model(),
        contact_limits=settings.ARBOR_CONTACT_LIMITS,
        conversation_lifetime=min(ttl_of(Retention.ROUTINE) or LONGEST_LIFETIME, LONGEST_LIFETIME),
        word_lists=word_lists(),
        reflexes=reflex_terms(),
        model_trust=settings.ARBOR_MODEL_TRUST,
        tokenizers=token_counters(),
    )


def _moment(agent: LeasedAgent, rules: Rules, now: datetime, model: EmbeddingModel | None) -> Moment:
    return Moment(
        now=now,
        rules=rules,
        nonce=secrets.token_hex(8),
        embeds_here=embeds_here(model),
        authority=agent.authority,
        # The key is opened when something is signed: most legs sign nothing.
        signer=KeySigner(agent.identity.signing_key),
    )


def _read_stored(member: LeasedHeartbeat, stored: OpenHeartbeat, rules: Rules, now: datetime) -> None:
    """Load a heartbeat from its row."""
    member.stored_situation = Situation.model_validate_json(unpack_text(stored.situation))
    member.checkpoint = read_checkpoint(
        unpack_text(stored.checkpoint),
        situation=member.stored_situation,
        moment_of=lambda model: _moment(member.agent, rules, now, model),
    )


def _new_heartbeat(member: LeasedHeartbeat, columns: _Columns, rules: Rules, now: datetime) -> HeartbeatState:
    """Return a heartbeat that begins, with the situation of its agent, as far as it is known without recall."""
    agent, authority = member.agent, member.agent.authority
    percepts, refused = open_percepts(columns["percepts"], receiver=columns["public_id"])
    waiting = columns["activity"]["percepts"] - len(refused)
    columns = {**columns, "percepts": percepts, "activity": {**columns["activity"], "percepts": waiting}}
    budget = _budget(columns, member.trigger)
    mind = columns["mind"]
    model = EmbeddingModel(name=mind["name"], dimension=mind["dimension"]) if mind else None
    genome, character = _identity(
        columns["character"], columns["genome"], columns["name"], self_knowledge_of(columns["aspects"])
    )
    tools = tools_of(columns, permits=partial(_permits, authority, now))
    missing = _missing_actions(columns) | tools.suspended
    # Writing to another agent is offered only where there is one.
    permitted = [
        name
        for name in ACTIONS
        if _permits(authority, now, name) and (name != REACH_OUT_AGENT or columns["other_agents"])
    ]
    handle = columns["model"] or rules.default_model
    possible = [name for name in permitted if name not in missing]
    situation = situation_of(columns, budget, genome, handle, possible, tools, now)
    situation = with_startable(situation, authority, possible, now)
    return HeartbeatState(
        moment=_moment(agent, rules, now, model),
        situation=_with_approvals(situation, authority, now),
        opening=opening_of(columns, situation, genome, now),
        tenant_id=current_tenant(),
        agent_id=agent.id,
        heartbeat_id=member.heartbeat_id,
        trigger=member.trigger,
        shift=random.uniform(-JITTER, JITTER),  # noqa: S311 (spreads a fleet, hides nothing)
        effects=_refusals(refused),
        selfhood=_selfhood(columns),
        found=_found_state(
            columns, ticks=situation.energy if situation.energy_unit == BudgetKind.TICKS else 0
        ),
        schedule=schedule_policy_of(columns["activity"]),
        embedding_model=model,
        signal_positions=columns["subscriptions"].positions,
        # The actions of tools last.
        allowed=[*possible, *tools.allowed],
        # Permitted actions that the agent cannot execute: a refusal names the missing requirement.
        missing={name: missing[name] for name in permitted if name in missing} | tools.suspended,
        budget_terms=budget,
        routing=Routing(
            own=columns["model"],
            tiers=columns["tier_models"] or {},
            ratios=columns["token_ratios"] or {},
        ),
        round_trips_allowed=round_trips_allowed(
            own=columns["follow_ups"], installed=settings.ARBOR_FOLLOW_UPS
        ),
        # Without a policy, the column is null.
        voices=columns["voices"] or 0,
        character=character,
        model=handle,
        nops=columns["activity"]["nops"],
    )


def _refusals(refused: Sequence[RefusedMessage]) -> Effects:
    """Return the effects of refused messages: they are taken in unopened, and audited."""
    return Effects(
        received_percepts=tuple(message.percept_id for message in refused),
        audit=tuple(
            AuditNote(
                action=AuditAction.MESSAGE_REFUSED,
                message=f"refused a message of {message.sender or 'an agent that no longer exists'}: {message.reason}",
                detail={"percept_id": str(message.percept_id)},
            )
            for message in refused
        ),
    )


def _budget(columns: _Columns, trigger: str) -> BudgetTerms | None:
    energy = energy_terms(tenant=columns["tenant_energy"], agent=columns["energy_policy"])
    if trigger == Trigger.CYCLE:
        # The ticks of a cycle are allocated to it, and not renewed once they are used up.
        return BudgetTerms(kind=BudgetKind.TICKS.value, allowance=0, energy=energy)
    if not columns["budget"] and energy is None:
        return None
    return BudgetTerms(
        kind=columns["budget"] or BudgetKind.ENERGY.value, allowance=columns["allowance"], energy=energy
    )


@lru_cache(maxsize=_IDENTITIES_CACHED)
def _identity(
    character: str, genome: str | None, name: str, knowledge: SelfKnowledge
) -> tuple[AgentGenome | None, str]:
    """Parse the genome, if any, and render the system prompt, which changes only with the self-knowledge."""
    own_genome = parse_genome(genome)
    parsed = Character.model_validate_json(character)
    return own_genome, to_system_prompt(parsed, name=name, genome=own_genome, knowledge=knowledge)


def _found_state(columns: _Columns, *, ticks: float) -> FoundState:
    """Return the columns of the agent's state that others may change during the heartbeat, which begins with these ticks."""
    return FoundState(
        energy=columns["energy"],
        ticks_left=columns["ticks_left"],
        ticks_renewed=max(0, int(ticks) - columns["ticks_left"]),
        bonus_actions=columns["bonus_actions"],
        mood=columns["mood"] or {},
        stale_heartbeats=columns["stale_heartbeats"],
        last_heartbeat_at=columns["last_heartbeat_at"],
    )


def _selfhood(columns: _Columns) -> Selfhood:
    return Selfhood(
        drives=columns["drives"] or {},
        mood=columns["mood"] or {},
        learned=columns["learned"] or {},
        tone=columns["tone"] or "",
        boundaries=columns["boundaries"],
        contact=columns["last_user_contact_at"],
    )


def _with_approvals(situation: Situation, authority: AgentAuthority, now: datetime) -> Situation:
    """Return the situation with the agent's requests for approval."""
    requests = [approval for approval in authority.approvals if not approval.has_expired(now)]
    return situation.model_copy(update={"approvals": request_views(requests)}) if requests else situation


def _permits(authority: AgentAuthority, now: datetime, action: str) -> bool:
    """Return whether the agent has a grant of an action."""
    if action == START_WORKFLOW:
        return bool(startable(authority, now))
    return authority.permits(action_resource(action), now=now)


def _missing_actions(columns: _Columns) -> dict[str, str]:
    """Return the actions that the agent cannot execute here and now, each with the missing requirement."""
    missing: dict[str, str] = {}
    if without := web_missing():
        missing |= dict.fromkeys(INQUIRIES, without)
    if not columns["has_public_channel"]:
        missing[REACH_OUT_PUBLIC] = _NO_PUBLIC_CHANNEL
    if not columns["has_waiting_step"]:
        missing[COMPLETE_STEP] = _NO_STEP
    return missing
