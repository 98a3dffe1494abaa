"""Pairs of acts on one agent at the same moment: each is done or refused, and what they leave fits together."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.agents.services.identity import rotate_agent_key
from apps.authority.services.approvals import approve, deny
from apps.contacts.services.chat import end_session, exchange_turns, open_session
from apps.fleet.identities import suspend_identity
from apps.fleet.lifecycle import destroy_agent, pause_agent
from apps.fleet.policy import set_policy
from apps.fleet.seeds.importing import fork_agent
from apps.fleet.seeds.restoring import RestoreOptions, restore_seed
from apps.fleet.seeds.saving import save_seed, verified_saved_seed
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.inline import allocate, run_heartbeat_now
from apps.memories.services.retention.archive import archive, purge
from apps.memories.services.retention.buffer import add_buffer_items, promote
from apps.memories.services.retention.pins import pin
from apps.memories.services.store.remember import remember
from apps.queues import captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import ArborError
from arbor.memory.buffer import NewBufferItem
from arbor.seeds.saving import SeedReason
from tests.factories.approvals import ActionApprovalFactory
from tests.integration.heartbeats.agent_machine import ANN, AgentMachine
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of
from tests.integration.memories.conftest import a_memory
from tests.integration.memories.mind_invariants import assert_mind_is_consistent
from tests.support.races import none_if_refused, race

PAIRS = [
    ("promote", "purge"),
    ("purge", "heartbeat"),
    ("promote", "restore_seed"),
    ("promote", "destroy"),
    ("approve", "destroy"),
    ("deny", "heartbeat"),
    ("suspend", "heartbeat"),
    ("suspend", "talk"),
    ("rotate_key", "talk"),
    ("pause", "heartbeat"),
    ("change_policy", "heartbeat"),
    ("allocate", "heartbeat"),
    ("restore_seed", "archive"),
    ("restore_seed", "heartbeat"),
    ("fork", "purge"),
    ("fork", "destroy"),
    ("pin", "archive"),
    ("talk", "end_talk"),
    ("talk", "destroy"),
]


class Acts:
    """Acts on one agent, by name, each in transactions of its own."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.ids: dict[str, Any] = {"tenant_id": agent.tenant_id, "agent_id": agent.id}
        texts = ("The ferry left.", "A parcel came.", "The quay is wet.")
        memories = [a_memory(text, occurred_at=datetime.now(UTC)) for text in texts]
        self.memory_id, self.archived_id, _ = remember(**self.ids, memories=memories).ids
        with tenant_transaction(agent.tenant_id):
            archive(memory_ids=[self.archived_id], reason="a test", actor=ANN)
            (self.item_id,) = add_buffer_items(
                agent_id=agent.id, items=[NewBufferItem(content="A parcel came.", importance=0.9)]
            )
            self.approval_id: UUID = ActionApprovalFactory(agent=agent).id
            self.session_id = open_session(agent_id=agent.id, person=ANN).id
            self.seed_id = save_seed(agent_id=agent.id, reason=SeedReason.REQUESTED, actor=ANN).id

    def act(self, name: str) -> Callable[[], object]:
        """Return an act that returns None if it is refused; its messages are dropped."""

        def run() -> object:
            with captured():
                return getattr(self, name)()

        return none_if_refused(run, ArborError)

    def promote(self) -> object:
        return promote(**self.ids, item_id=self.item_id, actor=ANN)

    def purge(self) -> object:
        return self._in_tenant(partial(purge, memory_ids=[self.archived_id], reason="a test", actor=ANN))

    def archive(self) -> object:
        return self._in_tenant(partial(archive, memory_ids=[self.memory_id], reason="a test", actor=ANN))

    def pin(self) -> object:
        return self._in_tenant(partial(pin, memory_ids=[self.memory_id], actor=ANN))

    def approve(self) -> object:
        return self._in_tenant(partial(approve, approval_id=self.approval_id, actor=ANN))

    def deny(self) -> object:
        return self._in_tenant(partial(deny, approval_id=self.approval_id, actor=ANN))

    def suspend(self) -> object:
        return self._in_tenant(partial(suspend_identity, agent_id=self.agent.id, reason="a test", actor=ANN))

    def rotate_key(self) -> object:
        return self._in_tenant(partial(rotate_agent_key, agent_id=self.agent.id, actor=ANN))

    def pause(self) -> object:
        return self._in_tenant(partial(pause_agent, agent_id=self.agent.id, actor=ANN))

    def change_policy(self) -> object:
        changes = {"budget": "ticks", "daily_heartbeats": 5}
        return self._in_tenant(partial(set_policy, agent_id=self.agent.id, changes=changes, actor=ANN))

    def allocate(self) -> object:
        return self._in_tenant(partial(allocate, agent_id=self.agent.id, ticks=3, actor=ANN))

    def destroy(self) -> object:
        destroy = partial(destroy_agent, agent_id=self.agent.id, confirm=self.agent.name, actor=ANN)
        return self._in_tenant(destroy)

    def end_talk(self) -> object:
        return self._in_tenant(partial(end_session, session_id=self.session_id))

    def talk(self) -> object:
        return exchange_turns(
            tenant_id=self.agent.tenant_id,
            session_id=self.session_id,
            text="Are you there?",
            execute=execute_call,
        )

    def heartbeat(self) -> object:
        return run_heartbeat_now(**self.ids)

    def fork(self) -> object:
        return fork_agent(**self.ids, name=f"{self.agent.name} 2", actor=ANN)

    def restore_seed(self) -> object:
        with verified_saved_seed(tenant_id=self.agent.tenant_id, seed_id=self.seed_id, actor=ANN) as seed:
            return restore_seed(**self.ids, seed=seed, options=RestoreOptions(), actor=ANN)

    def _in_tenant(self, operation: Callable[[], object]) -> object:
        with tenant_transaction(self.agent.tenant_id):
            return operation()


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_two_acts_at_once_are_done_or_refused(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script, pair: tuple[str, str]
) -> None:
    thought = reply_of(action_of("remember", content="The ferry waits at the quay.", importance=0.6))
    scripted(json.dumps({**json.loads(thought), "reply": "Yes."}), repeat=True)
    agent = new_agent(tenant)
    acts = Acts(agent)
    race(*(acts.act(name) for name in pair))

    fleet.messages.clear()
    with tenant_transaction(tenant.id):
        is_destroyed = not Agent.objects.filter(id=agent.id).exists()
    assert is_destroyed == ("destroy" in pair)
    if is_destroyed:
        return
    assert_mind_is_consistent(agent, neighbors_are_active=False)
    machine = AgentMachine()
    machine.tenant, machine.agent = tenant, agent
    machine.schedule_fits_the_agent()
    machine.usage_is_the_sum_of_the_ledger()
    machine.what_is_refused_leaves_nothing()
