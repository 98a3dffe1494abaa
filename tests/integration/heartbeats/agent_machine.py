"""A state machine over one agent: its life cycle, identity, rights and limits, with heartbeats and turns in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any

from django.db.models import Count, F, Sum
from django.db.models.functions import TruncDate
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from apps.agents.models import Agent, AgentKey, AgentState, HeartbeatSchedule, ScheduleState
from apps.agents.services.identity import identity_of, rotate_agent_key
from apps.authority.models import ActionApproval, CapabilityGrant
from apps.authority.services.approvals import approve, deny
from apps.authority.services.grants import grant_actions, revoke_actions
from apps.authority.services.modes import set_mode
from apps.calls.models import DailyUsage, LedgerEntry
from apps.contacts.models import ChatMessage
from apps.contacts.services.chat import exchange_turns, open_session
from apps.fleet.identities import reinstate_identity, suspend_identity
from apps.fleet.lifecycle import (
    pause_agent,
    resume_agent,
    sleep_agent,
    start_agent,
    stop_agent,
    wake_agent,
)
from apps.fleet.policy import set_policy
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.inline import allocate, run_heartbeat_now
from apps.memories.models import Memory
from apps.queues import captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.keys import KeyPurpose
from arbor.agents.lifecycle import AgentStatus
from arbor.authority.approvals import ApprovalStatus
from arbor.authority.modes import TrustMode
from arbor.errors import ArborError, ModelRejected
from arbor.models.ports import ModelReply, ModelRequest, TextSink
from arbor.models.usage import Usage
from tests.support.moved_clock import MovedClock

ANN = "user:ann"
REMEMBER = "arbor://actions/execute/remember"
VERBS: Mapping[str, Callable[..., Agent]] = MappingProxyType(
    {
        "start": start_agent,
        "pause": pause_agent,
        "resume": resume_agent,
        "stop": stop_agent,
        "sleep": sleep_agent,
        "wake": wake_agent,
    }
)
POLICIES: tuple[Mapping[str, Any], ...] = (
    {"budget": "energy"},
    {"budget": "actions", "allowance": 2},
    {"budget": "ticks", "allowance": None},
    {"daily_beats": 2},
    {"daily_tokens": 3_000},
    {"daily_beats": None, "daily_tokens": None},
)
UNDER_WAY = (HeartbeatStatus.RUNNING, HeartbeatStatus.WAITING)
tokens = st.integers(0, 2_000)


@dataclass(kw_only=True)
class PricedModel:
    """A model that does as the machine says, and counts tokens."""

    handle: str = "scripted/model"
    fails: bool = False
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        """Return the reply, or raise ModelRejected."""
        if self.fails:
            raise ModelRejected("the model declines")
        provider, _, model = self.handle.partition("/")
        return ModelReply(
            text=self.text,
            provider=provider,
            model=model,
            usage=self.usage,
            cost_usd=self.cost,
            latency_ms=1.0,
        )


class AgentMachine(RuleBasedStateMachine):
    """Acts on one agent, each of which may be refused; what they leave fits together."""

    clock: MovedClock
    model: PricedModel
    tenant: Tenant
    new_agent: Callable[..., Agent]
    number = 0

    @initialize(asks=st.booleans(), approved=st.booleans())
    def begin(self, asks: bool, approved: bool) -> None:
        type(self).number += 1
        self.agent = self.new_agent(self.tenant, name=f"Vega {self.number}")
        if asks:
            self.change_mode(mode=TrustMode.ASK)
        # So few steps would seldom make a decided approval, or heartbeats that are done and that failed.
        self.run_heartbeat(kind="remember", sent=10, received=10, cost=None)
        self.decide(approved=approved)
        for kind in ("rest", "failure"):
            self.run_heartbeat(kind=kind, sent=10, received=10, cost=None)

    # --- People ----------------------------------------------------------------------------------------------

    @rule(verb=st.sampled_from(sorted(VERBS)))
    def change_status(self, verb: str) -> None:
        self._try(lambda: VERBS[verb](agent_id=self.agent.id, actor=ANN))

    @rule()
    def suspend(self) -> None:
        self._try(lambda: suspend_identity(agent_id=self.agent.id, reason="a test", actor=ANN))

    @rule()
    def reinstate(self) -> None:
        self._try(lambda: reinstate_identity(agent_id=self.agent.id, actor=ANN))

    @rule()
    def rotate_key(self) -> None:
        self._try(lambda: rotate_agent_key(agent_id=self.agent.id, actor=ANN))

    @rule(changes=st.sampled_from(POLICIES))
    def change_policy(self, changes: Mapping[str, Any]) -> None:
        self._try(lambda: set_policy(agent_id=self.agent.id, changes=changes, actor=ANN))

    @rule(ticks=st.sampled_from([0, 2]))
    def allocate_ticks(self, ticks: int) -> None:
        self._try(lambda: allocate(agent_id=self.agent.id, ticks=ticks, actor=ANN))

    @rule(granted=st.booleans())
    def grant_or_revoke(self, granted: bool) -> None:
        if granted:
            self._try(lambda: grant_actions(agents=[self.agent], actions=["remember"], actor=ANN))
        else:
            self._try(
                lambda: revoke_actions(
                    action="remember", agent_ids=[self.agent.id], reason="a test", actor=ANN
                )
            )

    @rule(mode=st.sampled_from([TrustMode.ASK, TrustMode.ALLOW, TrustMode.BLOCK]))
    def change_mode(self, mode: TrustMode) -> None:
        self._try(lambda: set_mode(agent_id=self.agent.id, prefix=REMEMBER, mode=mode, actor=ANN))

    @rule(approved=st.booleans())
    def decide(self, approved: bool) -> None:
        with tenant_transaction(self.tenant.id):
            waiting = ActionApproval.objects.filter(agent_id=self.agent.id, status=ApprovalStatus.PENDING)
            ids = list(waiting.values_list("id", flat=True))
        decision = approve if approved else deny
        for approval_id in ids:
            self._try(partial(decision, approval_id=approval_id, actor=ANN))

    @rule(hours=st.sampled_from([1, 26]))
    def pass_time(self, hours: int) -> None:
        self.clock.advance(timedelta(hours=hours))

    # --- Heartbeats and turns ----------------------------------------------------------------------------------

    @rule(
        kind=st.sampled_from(["remember", "remember", "rest", "nonsense", "failure"]),
        sent=tokens,
        received=tokens,
        cost=st.sampled_from([None, Decimal(0), Decimal("0.00012345")]),
    )
    def run_heartbeat(self, kind: str, sent: int, received: int, cost: Decimal | None) -> None:
        action = {
            "action": kind,
            "params": {"content": f"The tide is at {sent}."} if kind == "remember" else {},
        }
        text = json.dumps({"thinking": "", "actions": [action], "memory_notes": [], "goal_updates": []})
        self._prepare("No." if kind == "nonsense" else text, kind, sent, received, cost)
        with tenant_transaction(self.tenant.id):
            before = AgentState.objects.get(agent_id=self.agent.id).energy
        with suppress(ArborError), captured():
            heartbeat = run_heartbeat_now(agent_id=self.agent.id, tenant_id=self.tenant.id)
            if kind == "failure" and heartbeat.status == HeartbeatStatus.FAILED:
                with tenant_transaction(self.tenant.id):
                    assert AgentState.objects.get(agent_id=self.agent.id).energy == before

    @rule(kind=st.sampled_from(["answer", "failure"]), sent=tokens, received=tokens)
    def talk(self, kind: str, sent: int, received: int) -> None:
        self._prepare(json.dumps({"thinking": "", "reply": "Yes."}), kind, sent, received, Decimal("0.5"))
        with suppress(ArborError), captured():
            with tenant_transaction(self.tenant.id):
                session_id = open_session(agent_id=self.agent.id, person=ANN).id
            exchange_turns(
                tenant_id=self.tenant.id, session_id=session_id, text="Are you there?", execute=execute_call
            )

    # --- Invariants --------------------------------------------------------------------------------------------

    @invariant()
    def schedule_fits_the_agent(self) -> None:
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            status = Agent.objects.get(id=self.agent.id).status
            schedule = HeartbeatSchedule.objects.get(agent_id=self.agent.id)
            may_act = status == AgentStatus.ACTIVE and not identity_of(self.agent.id).refusal
            assert (schedule.state == ScheduleState.IDLE) == may_act
            heartbeats = Heartbeat.objects.filter(agent_id=self.agent.id)
            assert not heartbeats.filter(status__in=UNDER_WAY).exists()
            assert not heartbeats.filter(ended_at=None).exists()
            slots = heartbeats.values("slot_at").annotate(times=Count("id"))
            assert not slots.filter(times__gt=1).exists()

    @invariant()
    def usage_is_the_sum_of_the_ledger(self) -> None:
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            days = LedgerEntry.objects.filter(agent_id=self.agent.id).annotate(day=TruncDate("at"))
            spent = days.values("day").annotate(
                calls=Count("id"), tokens=Sum(F("input_tokens") + F("output_tokens")), cost=Sum("cost_usd")
            )
            charged = {row["day"]: (row["calls"], row["tokens"], row["cost"] or 0) for row in spent}
            usage = DailyUsage.objects.filter(agent_id=self.agent.id, calls__gt=0)
            assert {row.day: (row.calls, row.tokens, row.cost_usd) for row in usage} == charged

    @invariant()
    def budgets_are_never_negative(self) -> None:
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            state = AgentState.objects.get(agent_id=self.agent.id)
            assert min(state.energy, state.ticks_left, state.bonus_actions, state.nops) >= 0

    @invariant()
    def one_key_signs(self) -> None:
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            keys = AgentKey.objects.filter(agent_id=self.agent.id, purpose=KeyPurpose.SIGNING)
            rows = list(keys.order_by("number").values_list("number", "sealed_private_key"))
        assert [number for number, _ in rows] == list(range(1, len(rows) + 1))
        assert [bool(sealed) for _, sealed in rows] == [False] * (len(rows) - 1) + [True]

    @invariant()
    def what_is_refused_leaves_nothing(self) -> None:
        """Check that failed heartbeats remember nothing, approvals run once, and each turn has one answer at most."""
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            failed = Heartbeat.objects.filter(agent_id=self.agent.id, status=HeartbeatStatus.FAILED)
            sources = [f"heartbeat:{heartbeat_id}" for heartbeat_id in failed.values_list("id", flat=True)]
            assert not Memory.objects.filter(agent_id=self.agent.id, source__in=sources).exists()
            executed = ActionApproval.objects.filter(
                agent_id=self.agent.id, status=ApprovalStatus.EXECUTED
            ).values_list("executed_by", flat=True)
            ids = set(Heartbeat.objects.filter(agent_id=self.agent.id).values_list("id", flat=True))
            assert set(executed) <= ids
            answered = ChatMessage.objects.filter(session__agent_id=self.agent.id, speaker="agent")
            turns = [turn.detail["to"] for turn in answered]
            assert len(turns) == len(set(turns))
            grants = CapabilityGrant.objects.filter(agent_id=self.agent.id, revoked_at=None)
            resources = list(grants.values_list("resource", flat=True))
            assert len(resources) == len(set(resources))

    # --- Acts ------------------------------------------------------------------------------------------------

    def _prepare(self, text: str, kind: str, sent: int, received: int, cost: Decimal | None) -> None:
        self.model.text, self.model.fails, self.model.cost = text, kind == "failure", cost
        self.model.usage = Usage(input_tokens=sent, output_tokens=received)

    def _try(self, act: Callable[[], object]) -> None:
        with suppress(ArborError), captured(), tenant_transaction(self.tenant.id):
            act()
