"""What an agent's status may become, and by which verb."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import TransitionIllegal


class AgentStatus(StrEnum):
    """Whether an agent lives, and if not, why."""

    #: Made, but never started: no heartbeat yet.
    CREATED = "created"
    #: Beats.
    ACTIVE = "active"
    #: Held by a person for a while; keeps its place.
    PAUSED = "paused"
    #: Ended by a person; all it was is kept, and it may be started again.
    STOPPED = "stopped"
    #: Fell asleep by itself, after too many heartbeats without a usable decision (seed 003, 10.7), or was put to sleep.
    DORMANT = "dormant"


class LifecycleVerb(StrEnum):
    """What can be done to an agent's status.

    Destroying is not among them: it is possible from every status and leaves no agent that could have one.
    """

    #: The first heartbeat, or the first after a stop.
    START = "start"
    #: Hold the heartbeats.
    PAUSE = "pause"
    #: End a pause.
    RESUME = "resume"
    #: End the agent's life, reversibly.
    STOP = "stop"
    #: Fall asleep: the heartbeat itself does this, or a program that embeds Arbor (seed 003, 4: ACTIVE -> DORMANT).
    SLEEP = "sleep"
    #: End the sleep.
    WAKE = "wake"


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
    """Return the status that follows; raise TransitionIllegal, naming the verbs that are possible now."""
    following = TRANSITIONS[status].get(verb)
    if following is None:
        possible = ", ".join([*TRANSITIONS[status], "destroy"])
        raise TransitionIllegal(f"cannot {verb} an agent that is {status}; possible now: {possible}")
    return following
