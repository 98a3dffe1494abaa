"""Load the heartbeats of a batch with the situations of their agents."""

from __future__ import annotations

import random
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.agents.models import Trigger
from apps.agents.services.energy import energy_terms
from apps.agents.services.keychain import RefusedMessage, open_percepts
from apps.audit.models import AuditAction
from apps.authority.services.reflexes import reflex_terms
from apps.calls.services.usage import budget_status
from apps.heartbeats.services.legs.leases import resolve
from apps.heartbeats.services.legs.members import Due, LeasedAgent, LeasedHeartbeat
from apps.heartbeats.services.schedule import JITTER
from apps.heartbeats.services.situations.recent_activity import (
    exhausted_heartbeats_of,
    limits_of,
    presence_of,
    recent_heartbeats_of,
    schedule_policy_of,
    spending_of,
    used_of,
)
from apps.heartbeats.services.situations.self_situation import view_self, with_identity
from apps.heartbeats.services.situations.situation import load_situations
from apps.heartbeats.services.situations.tools import AgentTools, tools_of
from apps.heartbeats.services.situations.workflows import startable, with_startable
from apps.memories.services.embedding.embedding import embeds_here
from apps.memories.services.store.appraisal import ttl_of, word_lists
from apps.providers import default_model
from apps.tenants.packing import unpack_text
from apps.tenants.scope import current_tenant
from apps.web import web_missing
from arbor.agents.character import Character, to_system_prompt
from arbor.agents.energy import EnergyTerms
from arbor.agents.genome import AgentGenome
from arbor.authority.authorization import AgentAuthority
from arbor.authority.grants import action_resource
from arbor.authority.requests import KeySigner
from arbor.clock import Clock
from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.embedding.models import EmbeddingModel
from arbor.goals.intents import IntentStatus
from arbor.goals.review import GoalFlag
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import DEFAULT_BUDGET, BudgetBalance, BudgetKind, budget_of
from arbor.heartbeat.checkpoint import read_checkpoint
from arbor.heartbeat.effects import AuditNote, Effects
from arbor.heartbeat.failure_modes import RecentActivity
from arbor.heartbeat.goal_situation import circumstances_of, scale_of, view_goals
from arbor.heartbeat.replies.turns import turns_allowed
from arbor.heartbeat.situation import Environment, LastHeartbeat, Mode, Situation
from arbor.heartbeat.state import BudgetTerms, HeartbeatState, Moment, Opening, Routing, Rules, Selfhood
from arbor.heartbeat.state_merge import FoundState
from arbor.heartbeat.steps.approvals import request_views
from arbor.heartbeat.usage import Degradation
from arbor.ids import uuid7
from arbor.memory.buffer import LONGEST
from arbor.memory.detail_text import detail_lines
from arbor.memory.values import MemoryType, Retention
from arbor.models.handles import REFLEX
from arbor.pipeline.engine import begin
from arbor.selves.memory_filters import filters_of
from arbor.selves.self_knowledge import SelfKnowledge, self_knowledge_of
from arbor.workflows.values import START_WORKFLOW

#: Agents whose system prompts a process caches, a few KB each.
_IDENTITIES_CACHED = 1024
#: Stale goals named in a notice.
_STALE_NAMED = 3

_NO_PUBLIC_CHANNEL = (
    "no public channel is set up for you; a person can add one with"
    " `arbor contact channel add NAME --kind webhook --to URL --audience public`"
)

type _Columns = Mapping[str, Any]


def load_batch(
    leases: Sequence[tuple[UUID, int]], *, clock: Clock, running: Collection[UUID] = ()
) -> list[LeasedHeartbeat]:
    """Lock the leases (agent, epoch) and load the heartbeats to start or resume under them.

    Three statements; two if none starts. `running`: as in `resolve`.
    """
    due = resolve(leases, clock=clock, running=running)
    beginning = [heartbeat.agent for heartbeat in due if heartbeat.open is None]
    columns = (
        load_situations(
            [agent.id for agent in beginning],
            writing=_with_any(beginning, REACH_OUT_USER, REACH_OUT_AGENT, now=clock.now()),
            publishing=_with_any(beginning, REACH_OUT_PUBLIC, now=clock.now()),
        )
        if beginning
        else {}
    )
    rules, now = _rules(), clock.now()
    return [
        _resumed(heartbeat, rules, now)
        if heartbeat.open is not None
        else _begun(heartbeat, columns[heartbeat.agent.id], rules, now)
        for heartbeat in due
    ]


def _with_any(agents: Sequence[LeasedAgent], *actions: str, now: datetime) -> list[UUID]:
    """Return the agents that may do one of the actions."""
    return [
        agent.id
        for agent in agents
        if any(agent.authority.permits(action_resource(action), now=now) for action in actions)
    ]


def _rules() -> Rules:
    return Rules(
        reflect_every=settings.ARBOR_REFLECT_EVERY,
        reflect_pause=settings.ARBOR_REFLECT_PAUSE,
        model_context=settings.ARBOR_MODEL_CONTEXT,
        reply_tokens=settings.ARBOR_MODEL_MAX_TOKENS,
        tier_models=settings.ARBOR_TIER_MODELS,
        default_model=default_model(),
        contact_limits=settings.ARBOR_CONTACT_LIMITS,
        conversation_lasts=min(ttl_of(Retention.ROUTINE) or LONGEST, LONGEST),
        word_lists=word_lists(),
        reflexes=reflex_terms(),
        model_trust=settings.ARBOR_MODEL_TRUST,
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


def _resumed(due: Due, rules: Rules, now: datetime) -> LeasedHeartbeat:
    """Load a heartbeat from its checkpoint."""
    stored = due.open
    assert stored is not None
    situation = Situation.model_validate_json(unpack_text(stored.situation))
    checkpoint = read_checkpoint(
        unpack_text(stored.checkpoint),
        situation=situation,
        moment_of=lambda model: _moment(due.agent, rules, now, model),
    )
    return LeasedHeartbeat(
        agent=due.agent,
        heartbeat_id=stored.id,
        epoch=due.lease.epoch,
        slot_at=stored.slot_at,
        trigger=stored.trigger,
        checkpoint=checkpoint,
        result=due.result,
        step=stored.step,
        stored_view=situation,
        own_ms=stored.own_ms,
        elapsed_ms=stored.elapsed_ms,
        acted=stored.acted,
    )


def _begun(due: Due, columns: _Columns, rules: Rules, now: datetime) -> LeasedHeartbeat:
    """Return a heartbeat that begins, with the situation of its agent, as far as it is known without recall."""
    heartbeat_id, graph = uuid7(), due.agent.graph
    percepts, refused = open_percepts(columns["percepts"], receiver=columns["public_id"])
    waiting = columns["pulse"]["percepts"] - len(refused)
    columns = {**columns, "percepts": percepts, "pulse": {**columns["pulse"], "percepts": waiting}}
    budget = _budget(columns, due.lease.trigger)
    mind = columns["mind"]
    model = EmbeddingModel(name=mind["name"], dimension=mind["dimension"]) if mind else None
    genome, character = _identity(
        columns["character"], columns["genome"], columns["name"], self_knowledge_of(columns["aspects"])
    )
    authority = due.agent.authority
    tools = tools_of(columns, permits=partial(_permits, authority, now))
    missing = missing_actions(has_public_channel=columns["has_public_channel"]) | tools.suspended
    permitted = _permitted(authority, now)
    if not columns["other_agents"]:
        # Offered only where there is somebody to write to.
        permitted = [name for name in permitted if name != REACH_OUT_AGENT]
    handle = columns["model"] or rules.default_model
    possible = [name for name in permitted if name not in missing]
    situation = _situation(columns, budget, genome, handle, possible, tools, now)
    situation = with_startable(situation, authority, possible)
    heartbeat = HeartbeatState(
        moment=_moment(due.agent, rules, now, model),
        view=_with_approvals(situation, due.agent.authority, now),
        opening=_opening(columns, situation, genome, now),
        tenant_id=current_tenant(),
        agent_id=due.agent.id,
        heartbeat_id=heartbeat_id,
        trigger=due.lease.trigger,
        shift=random.uniform(-JITTER, JITTER),  # noqa: S311 (spreads a fleet, hides nothing)
        effects=_refusals(refused),
        selfhood=_selfhood(columns),
        found=found_state(columns, begun_with=situation.energy if situation.energy_unit == "ticks" else 0),
        rhythm=schedule_policy_of(columns["pulse"]),
        embedding_model=model,
        # The actions of tools last.
        allowed=[*possible, *(tool.action for tool in tools.allowed)],
        # Permitted actions that the installation cannot execute: a refusal names the missing setting.
        missing={name: missing[name] for name in permitted if name in missing} | tools.suspended,
        budget_terms=budget,
        routing=Routing(
            own=columns["model"],
            tiers=columns["tier_models"] or {},
            ratios=columns["token_ratios"] or {},
        ),
        turns_allowed=turns_allowed(own=columns["follow_ups"], installed=settings.ARBOR_FOLLOW_UPS),
        # Without a policy, the column is null.
        voices=columns["voices"] or 0,
        character=character,
        model=handle,
        nops=columns["pulse"]["nops"],
    )
    return LeasedHeartbeat(
        agent=due.agent,
        heartbeat_id=heartbeat_id,
        epoch=due.lease.epoch,
        slot_at=due.lease.slot_at,
        trigger=due.lease.trigger,
        checkpoint=begin(graph, heartbeat),
    )


def _refusals(refused: Sequence[RefusedMessage]) -> Effects:
    """Return the effects of refused messages: they are taken in unopened, and audited."""
    return Effects(
        received_percepts=tuple(message.percept_id for message in refused),
        audit=tuple(
            AuditNote(
                action=AuditAction.MESSAGE_REFUSED,
                message=f"refused a message of {message.sender or 'an agent that is no more'}: {message.reason}",
                detail={"percept_id": str(message.percept_id)},
            )
            for message in refused
        ),
    )


def _budget(columns: _Columns, trigger: str) -> BudgetTerms | None:
    energy = energy_terms(tenant=columns["tenant_energy"], agent=columns["energy_policy"])
    if trigger == Trigger.CYCLE:
        # The ticks of a cycle are allocated to it, and are no more once they are used up.
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
    own_genome = AgentGenome.model_validate_json(genome) if genome not in (None, "{}") else None
    parsed = Character.model_validate_json(character)
    return own_genome, to_system_prompt(parsed, name=name, genome=own_genome, knowledge=knowledge)


def found_state(columns: _Columns, *, begun_with: float = 0) -> FoundState:
    """Return the columns of the agent's state that others may change during the heartbeat; `begun_with`: its ticks."""
    return FoundState(
        energy=columns["energy"],
        ticks_left=columns["ticks_left"],
        ticks_renewed=max(0, int(begun_with) - columns["ticks_left"]),
        bonus_actions=columns["bonus_actions"],
        mood=columns["mood"] or {},
        stale_beats=columns["stale_beats"],
        talked=int((columns["working_memory"] or {}).get("talked") or 0),
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


def _opening(columns: _Columns, situation: Situation, genome: AgentGenome | None, now: datetime) -> Opening:
    activity = columns["pulse"]
    status = budget_status(limits_of(activity), used_of(activity))
    stale = [goal.title for goal in situation.active_goals if GoalFlag.STALE in goal.flags]
    mood = situation.mood.valence if columns["mood"] and situation.mood else None
    return Opening(
        recent_activity=RecentActivity(
            heartbeats=recent_heartbeats_of(activity),
            energy=spending_of(activity),
            regeneration=situation.regeneration,
            stale_goals=stale[:_STALE_NAMED],
            reached_out=activity["reached_out"],
            nops=activity["nops"],
            waiting_percepts=activity["percepts"],
            pending_intents=sum(intent.status is IntentStatus.PENDING for intent in situation.intents),
            stuck_intents=activity["stuck"],
            stale_neighborhoods=activity["stale"],
            unsummarized_episodes=activity["unsummarized"],
            level=status.level,
            scarcest=status.nearest,
        ),
        level_before=Degradation((activity["used"] or {}).get("level", Degradation.NORMAL)),
        idle_beats=activity["idle_beats"],
        held=columns["held"],
        mood=mood if mood is not None else (columns["last_beat"] or {}).get("emotional_valence"),
        filters=filters_of(columns["beliefs"]),
        circumstances=circumstances_of(
            columns, genome, exhausted_heartbeats=exhausted_heartbeats_of(activity)
        ),
        scale=scale_of(columns, traits=genome.traits if genome else None, now=now),
    )


def _situation(
    columns: _Columns,
    terms: BudgetTerms | None,
    genome: AgentGenome | None,
    model: str,
    possible: Sequence[str],
    tools: AgentTools,
    now: datetime,
) -> Situation:
    energy = (terms.energy if terms else None) or EnergyTerms()
    budget = budget_of(terms.kind, terms.allowance, energy) if terms else DEFAULT_BUDGET
    default_prices = budget.kind is BudgetKind.ENERGY and not energy.costs
    holdings = BudgetBalance(
        energy=columns["energy"], bonus_actions=columns["bonus_actions"], ticks_left=columns["ticks_left"]
    )
    situation = Situation.model_validate(
        {
            "agent_id": str(columns["id"]),
            "name": columns["name"],
            "public_id": columns["public_id"],
            "tenant": columns["tenant"],
            "model_is_reflex": model.startswith(f"{REFLEX}/"),
            "beat_number": columns["beats"] + 1,
            "environment": _environment(columns, now),
            "energy": budget.begin(holdings),
            "max_energy": budget.most(holdings),
            "energy_unit": budget.unit,
            "regeneration": energy.regeneration,
            "actions": [
                *ACTIONS.offers(possible, price=None if default_prices else budget.price),
                *tools.offers(price=budget.price),
            ],
            **view_goals(columns, traits=genome.traits if genome else None, now=now),
            "percepts": columns["percepts"],
            "recent": [_recent(memory) for memory in columns["recent"]],
            **view_self(columns, now=now),
            "working_memory": columns["working_memory"],
            "themes": columns["themes"],
            "last_beat": _last_heartbeat(columns["last_beat"]),
        }
    )
    return with_identity(situation, columns)


def _recent(memory: Mapping[str, Any]) -> dict[str, Any]:
    return {**memory, "details": detail_lines(MemoryType(memory["type"]), memory["detail"] or {})}


def _environment(columns: _Columns, now: datetime) -> Environment:
    contact = columns["last_user_contact_at"]
    return Environment(
        now=now,
        user_waiting=columns["user_messages"] > 0,
        user_messages=columns["user_messages"],
        hours_since_user=(now - contact) / timedelta(hours=1) if contact else None,
        pending_percepts=columns["pulse"]["percepts"],
        published_today=columns["published_today"],
        other_agents=columns["other_agents"],
        **presence_of(columns["pulse"], last_contact=contact, now=now),
    )


def _with_approvals(situation: Situation, authority: AgentAuthority, now: datetime) -> Situation:
    """Return the situation with the agent's requests for approval."""
    requests = [approval for approval in authority.approvals if approval.is_open(now)]
    return situation.model_copy(update={"approvals": request_views(requests)}) if requests else situation


def _permitted(authority: AgentAuthority, now: datetime) -> list[str]:
    """Return the actions that the agent has a grant of, without those of tools."""
    return [
        name
        for name in ACTIONS
        if (startable(authority) if name == START_WORKFLOW else _permits(authority, now, name))
    ]


def _permits(authority: AgentAuthority, now: datetime, action: str) -> bool:
    return authority.permits(action_resource(action), now=now)


def _last_heartbeat(heartbeat: Mapping[str, Any] | None) -> LastHeartbeat | None:
    if heartbeat is None:
        return None
    outcomes = [f"{action['action']}: {action['summary']}" for action in heartbeat["actions"]]
    return LastHeartbeat(
        number=heartbeat["number"],
        mode=Mode(heartbeat["mode"]),
        narrative=heartbeat["narrative"],
        outcomes=outcomes,
    )


def missing_actions(*, has_public_channel: bool) -> dict[str, str]:
    """Return the actions that agents cannot execute in this installation, each with the missing requirement."""
    missing: dict[str, str] = {}
    if without := web_missing():
        missing |= {"inquire_shallow": without, "inquire_deep": without}
    if not has_public_channel:
        missing["reach_out_public"] = _NO_PUBLIC_CHANNEL
    return missing
