"""Memories, replies and requests as tests write and read them, and a runner of heartbeats with scripted replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from apps.agents.models import Agent
from apps.goals.models import Goal
from arbor.clock import SystemClock
from arbor.memory.values import MemoryType, NewMemory
from arbor.models.ports import ModelRequest, ScriptedModel
from tests.integration.heartbeats.fleet import Fleet
from tests.support.memories import store_memories

type Script = Callable[..., ScriptedModel]


def store_memory(agent: Agent, text: str, **fields: Any) -> str:
    """Store a memory with these fields; return its id."""
    memory = NewMemory(content=text, occurred_at=SystemClock().now(), **fields)
    return str(store_memories(agent, memory).ids[0])


def store_fact(agent: Agent, text: str, **fields: Any) -> str:
    """Store a semantic memory with these fields; return its id."""
    return store_memory(agent, text, type=MemoryType.SEMANTIC, **fields)


def reply_of(*actions: dict[str, Any], **keys: Any) -> str:
    """Return a reply with these actions and keys."""
    return json.dumps(
        {"thinking": "", "actions": list(actions), "memory_notes": [], "goal_updates": [], **keys}
    )


def reply_giving_up(goal: Goal) -> str:
    """Return a reply that abandons the goal, which is a hard decision."""
    return reply_of(goal_updates=[{"goal_id": str(goal.id), "state": "abandoned", "reason": "dull"}])


def action_of(name: str, intent_id: UUID | str | None = None, **params: Any) -> dict[str, Any]:
    """Return an action as a model writes it, as a step of a plan if it names an intent."""
    intent = str(intent_id) if intent_id else None
    return {"action": name, "params": params, "reasoning": "because", "intent_id": intent}


def text_of(request: ModelRequest) -> str:
    """Return the system prompt and the messages of a request as one text."""
    return "\n".join([request.system, *(message.content for message in request.messages)])


class HeartbeatRunner:
    """Runs heartbeats of one agent with scripted replies, and returns their last prompts."""

    def __init__(self, fleet: Fleet, agent: Agent, scripted: Script) -> None:
        self._fleet, self._agent, self._scripted = fleet, agent, scripted

    def run(self, *replies: str) -> str:
        """Run one heartbeat; return the prompt of its last question."""
        model = self._scripted(*replies)
        self._fleet.claim(self._agent)
        self._fleet.run()
        return text_of(model.requests[-1])
