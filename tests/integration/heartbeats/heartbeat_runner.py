"""Run heartbeats of an agent with scripted replies, and record their prompts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from apps.agents.models import Agent
from apps.heartbeats.services.schedule import claim_now
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from arbor.memory.values import NewMemory
from arbor.models.ports import ModelRequest, ScriptedModel
from tests.integration.heartbeats.fleet import Fleet

type Script = Callable[..., ScriptedModel]


def memory_of(agent: Agent, text: str) -> str:
    stored = remember(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        memories=[NewMemory(content=text, occurred_at=SystemClock().now())],
    )
    return str(stored.ids[0])


def reply_of(**keys: Any) -> str:
    return json.dumps({"thinking": "", "actions": [], "memory_notes": [], "goal_updates": [], **keys})


def action_of(name: str, intent_id: str | None = None, **params: Any) -> dict[str, Any]:
    return {"action": name, "params": params, "reasoning": "because", "intent_id": intent_id}


class HeartbeatRunner:
    """Runs heartbeats of one agent with scripted replies, and returns its prompts."""

    def __init__(self, fleet: Fleet, agent: Agent, scripted: Script) -> None:
        self._fleet, self._agent, self._scripted = fleet, agent, scripted

    def run(self, *replies: str) -> str:
        """Run one heartbeat; return the prompt of its last question."""
        model = self._scripted(*replies)
        with tenant_transaction(self._agent.tenant_id):
            claim_now(agent_id=self._agent.id)
        self._fleet.run()
        request: ModelRequest = model.requests[-1]
        return "\n".join([request.system, *(message.content for message in request.messages)])
