"""The statuses of an agent and the verbs that change them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import TransitionIllegal


class AgentStatus(StrEnum):
    """The status of an agent."""

    #: Created, but never started: no heartbeat yet.
    CREATED = "created"
    #: Has heartbeats.
    ACTIVE = "active"
    #: Paused by a person for a while.
    PAUSED = "paused"
    #: Stopped by a person; its data stays, and it may be started again.
    STOPPED = "stopped"
    #: Made dormant by too many heartbeats without a usable decision (seed 003, 10.7), or by a program.
    DORMANT = "dormant"


#: The statuses of an agent that other agents may write to. In the others it reads nothing until a person starts it.
REACHABLE = frozenset({AgentStatus.ACTIVE, AgentStatus.PAUSED, AgentStatus.DORMANT})


class LifecycleVerb(StrEnum):
    """The verbs that change an agent's status.

    Destroying an agent has no verb: it is possible from every status, and no status follows.
    """

    #: Begin the heartbeats, for the first time or after a stop.
    START = "start"
    #: Pause the heartbeats.
    PAUSE = "pause"
    #: End a pause.
    RESUME = "resume"
    #: Stop the agent, reversibly.
    STOP = "stop"
    #: Make the agent dormant: by its heartbeat, or a program that embeds Arbor (seed 003, 4: ACTIVE -> DORMANT).
    SLEEP = "sleep"
    #: End the dormancy.
    WAKE = "wake"


#: The legal transitions: by status, each possible verb with the status that follows.
TRANSITIONS: Mapping[AgentStatus, Mapping[LifecycleVerb, AgentStatus]] = MappingProxyType(
    {
        AgentStatus.CREATED: {LifecycleVerb.START: AgentStatus.ACTIVE},
        AgentStatus.ACTIVE: {
            LifecycleVerb.PAUSE: AgentStatus.PAUSED,
            LifecycleVerb.STOP: AgentStatus.STOPPED,
            LifecycleVerb.SLEEP: AgentStatus.DORMANT,
        },
        AgentStatus.PAUSED: {
            LifecycleVerb.RESUME: AgentStatus.ACTIVE,
            LifecycleVerb.STOP: AgentStatus.STOPPED,
        },
        AgentStatus.STOPPED: {LifecycleVerb.START: AgentStatus.ACTIVE},
        AgentStatus.DORMANT: {
            LifecycleVerb.WAKE: AgentStatus.ACTIVE,
            LifecycleVerb.STOP: AgentStatus.STOPPED,
        },
    }
)


def transition(status: AgentStatus, verb: LifecycleVerb) -> AgentStatus:
    """Return the status that follows a verb; raise TransitionIllegal, naming the verbs that are possible now."""
    following = TRANSITIONS[status].get(verb)
    if following is None:
        possible = ", ".join([*TRANSITIONS[status], "destroy"])
        raise TransitionIllegal(f"cannot {verb} an agent that is {status}; possible now: {possible}")
    return following
