"""A fleet whose messages a test can lose, double and delay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from apps.agents.models import Agent, Trigger
from apps.contacts.services.chat import answer_turn
from apps.contacts.services.delivery import deliver
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.legs.runner import advance_heartbeats
from apps.heartbeats.services.schedule import DispatchCounts, claim_now, dispatch
from apps.queues import Task, TaskMessage, captured
from apps.tenants.scope import tenant_transaction
from apps.workflows.services.legs import advance_run


class Fleet:
    """Dispatcher, workers and broker, one step at a time."""

    def __init__(self, messages: list[TaskMessage]) -> None:
        self.messages = messages

    def dispatch(self) -> DispatchCounts:
        """Run one tick of the dispatcher."""
        return dispatch()

    def claim(self, agent: Agent, *, trigger: Trigger = Trigger.OPERATOR) -> None:
        """Claim an agent for a heartbeat at once, whether or not it is due."""
        with tenant_transaction(agent.tenant_id):
            claim_now(agent_id=agent.id, trigger=trigger)

    def pop_message(self) -> TaskMessage:
        """Remove the oldest message from the broker, and return it."""
        return self.messages.pop(0)

    def deliver(self, message: TaskMessage) -> bool:
        """Execute a message as a worker does; return whether there was work."""
        arguments = message.arguments
        if message.task is Task.ADVANCE:
            lease = (UUID(arguments["agent_id"]), arguments["epoch"])
            lost = arguments.get("lost", False)
            return bool(advance_heartbeats(tenant_id=message.tenant_id, leases=[lease], lost=lost))
        if message.task is Task.ANSWER:
            return answer_turn(
                turn_id=UUID(arguments["turn_id"]), tenant_id=message.tenant_id, execute=execute_call
            )
        if message.task is Task.ADVANCE_WORKFLOW:
            return advance_run(run_id=UUID(arguments["run_id"]), tenant_id=message.tenant_id)
        if message.task is Task.DELIVER:
            return deliver(message_id=UUID(arguments["message_id"]), tenant_id=message.tenant_id)
        return execute_call(call_id=UUID(arguments["call_id"]), tenant_id=message.tenant_id)

    def step(self) -> TaskMessage:
        """Deliver the oldest message and return it."""
        message = self.pop_message()
        self.deliver(message)
        return message

    def run(self) -> None:
        """Deliver messages until there are none."""
        while self.messages:
            self.step()


@contextmanager
def a_fleet() -> Iterator[Fleet]:
    """Yield a fleet whose broker is a list."""
    with captured() as messages:
        yield Fleet(messages)
