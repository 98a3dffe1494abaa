"""The source, trust and role of what reaches an agent: a percept is believed as far as its sender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, WEBHOOK, PerceptView
from arbor.heartbeat.views import PeerView
from arbor.memory.importance import USER
from arbor.memory.trust import DEFAULT_SOURCE_TRUST, Source
from arbor.selves.trust import UNMET

#: Trust in the agent's own conclusions: below 1, because a model can err.
OWN_CONCLUSION_TRUST = 0.8
#: Trust in a user's messages: above `DEFAULT_SOURCE_TRUST`, because the source is known.
USER_TRUST = 0.7
#: Trust in a delivery of a hook: the signature proves the system, but anybody may have written its texts.
WEBHOOK_TRUST = 0.3

#: The role of percepts that nobody in particular sent.
ENVIRONMENT = "environment"
_HOOK_LENGTH = 100
#: Roles with a meaning of their own; an agent of such a name is no user.
_RESERVED = frozenset({USER, "agent", "assistant", ENVIRONMENT, "function", "system", "tool", "tool_result"})
#: Percepts that Arbor itself creates about the agent's own work (`apps.agents.models.PerceptKind`).
_OWN_EVENTS: Mapping[str, str] = MappingProxyType({"action_result": "tool_result", "timeout": "system"})


def source_of(percept: PerceptView, peers: Sequence[PeerView]) -> Source:
    """Return the source of a percept: a peer is trusted as far as known under its id (seed 003, 10.3), at most as a user is."""
    if percept.kind == USER_MESSAGE:
        return Source(kind="user", reference="user", trust=USER_TRUST)
    if percept.kind == PEER_MESSAGE:
        known = {peer.peer_id: peer.trust for peer in peers if peer.peer_id}
        trust = min(known.get(percept.peer_id, UNMET), USER_TRUST)
        return Source(kind="agent", reference=f"agent:{percept.peer_id or 'unknown'}", trust=trust)
    if percept.kind == WEBHOOK:
        name = " ".join(str(percept.detail.get("hook", "unknown")).split())[:_HOOK_LENGTH]
        return Source(kind="webhook", reference=f"webhook:{name}", trust=WEBHOOK_TRUST)
    trust = OWN_CONCLUSION_TRUST if is_own_event(percept) else DEFAULT_SOURCE_TRUST
    return Source(kind="percept", reference=percept.kind, trust=trust)


def is_own_event(percept: PerceptView) -> bool:
    """Return whether Arbor itself created the percept, about the agent's own work."""
    return percept.kind in _OWN_EVENTS


def own_source(agent_id: object) -> Source:
    """Return the source of the agent's own notes and conclusions."""
    return Source(kind="heartbeat", reference=f"agent:{agent_id}", trust=OWN_CONCLUSION_TRUST)


def role_of(percept: PerceptView) -> str:
    """Return the role under which a percept is remembered: `user`, the name of an agent, or a role that is nobody's."""
    if percept.kind == USER_MESSAGE:
        return USER
    if percept.kind == PEER_MESSAGE:
        name = percept.peer.strip()
        return f"agent {name}".strip() if not name or name.casefold() in _RESERVED else name
    return _OWN_EVENTS.get(percept.kind, ENVIRONMENT)
