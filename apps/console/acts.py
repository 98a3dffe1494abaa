"""Acts of people on agents. Each calls one service, and is possible in some statuses only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

from apps.agents.services.identity import rotate_agent_key
from apps.agents.services.publication import publish_agent, unpublish_agent
from apps.console.access import Right
from apps.fleet.identities import reinstate_identity, revoke_identity, suspend_identity
from apps.fleet.lifecycle import pause_agent, resume_agent, start_agent, stop_agent, wake_agent
from apps.heartbeats.services.schedule import request_heartbeat
from arbor.agents.endorsement import EndorsementStatus
from arbor.agents.lifecycle import TRANSITIONS, AgentStatus, LifecycleVerb
from arbor.errors import NotFound


@dataclass(frozen=True, kw_only=True)
class Act:
    """An act on an agent: its button, and the service that executes it."""

    verb: str
    label: str
    icon: str
    service: Callable[..., Any]
    #: The page's message after the act, without the agent, its subject.
    done: str
    #: The question before the act; empty for an act that is easily undone.
    question: str = ""
    #: Whether the service takes a reason.
    asks_reason: bool = False
    right: Right = Right.OPERATE


_RUN_NOW = Act(
    verb="run",
    label="Run now",
    icon="ecg_heart",
    service=request_heartbeat,
    done="will have a heartbeat at once",
)

ACTS: Mapping[str, Act] = MappingProxyType(
    {
        act.verb: act
        for act in (
            _RUN_NOW,
            Act(verb="start", label="Start", icon="play_arrow", service=start_agent, done="is started"),
            Act(verb="resume", label="Resume", icon="play_arrow", service=resume_agent, done="is resumed"),
            Act(verb="wake", label="Wake", icon="light_mode", service=wake_agent, done="is awake"),
            Act(verb="pause", label="Pause", icon="pause", service=pause_agent, done="is paused"),
            Act(
                verb="stop",
                label="Stop",
                icon="stop",
                service=stop_agent,
                done="is stopped",
                question="Stop this agent? Its data stays, and it can be started again.",
            ),
            Act(
                verb="suspend-identity",
                label="Suspend",
                icon="gpp_maybe",
                service=suspend_identity,
                done="does not act until its identity is reinstated",
                asks_reason=True,
            ),
            Act(
                verb="reinstate-identity",
                label="Reinstate",
                icon="gpp_good",
                service=reinstate_identity,
                done="may act again",
            ),
            Act(
                verb="revoke-identity",
                label="Revoke",
                icon="gpp_bad",
                service=revoke_identity,
                done="never acts again",
                question="Revoke this identity for good? The agent never acts again; its data stays.",
                asks_reason=True,
                right=Right.OWN,
            ),
            Act(
                verb="rotate-keys",
                label="Rotate keys",
                icon="key",
                service=rotate_agent_key,
                done="has new keys, under the same public id",
                question="Replace this agent's keys? The private half of the present signing key is deleted.",
            ),
            Act(
                verb="publish",
                label="Publish",
                icon="public",
                service=publish_agent,
                done="is published",
                question="Publish this agent? Its name and role become readable without a token,"
                " and agents elsewhere that have a token give it tasks.",
            ),
            Act(
                verb="unpublish",
                label="Withdraw",
                icon="public_off",
                service=unpublish_agent,
                done="is not published any more",
                question="Withdraw this agent's card? Agents elsewhere reach it no longer.",
            ),
        )
    }
)


def possible_acts(status: str) -> list[Act]:
    """Return the possible acts in a status, the most likely first."""
    verbs = [verb for verb in TRANSITIONS[AgentStatus(status)] if verb is not LifecycleVerb.SLEEP]
    first = [_RUN_NOW] if status == AgentStatus.ACTIVE else []
    return [*first, *(ACTS[verb.value] for verb in verbs)]


def publication_act(*, published: bool) -> Act:
    """Return the act that publishes an agent, or withdraws it."""
    return ACTS["unpublish" if published else "publish"]


def identity_acts(status: str) -> list[Act]:
    """Return the acts on an identity in this `EndorsementStatus`; none for an empty status, of an agent without endorsement."""
    verbs = {
        EndorsementStatus.ACTIVE: ("rotate-keys", "suspend-identity", "revoke-identity"),
        EndorsementStatus.SUSPENDED: ("reinstate-identity", "revoke-identity"),
    }
    return [ACTS[verb] for verb in verbs.get(EndorsementStatus(status), ())] if status else []


def right_for(verb: str) -> Right:
    """Return the right that an act needs."""
    return ACTS[verb].right if verb in ACTS else Right.OPERATE


def carry_out(*, verb: str, agent_id: UUID, actor: str, reason: str = "") -> Act:
    """Carry out an act.

    Raises NotFound for an unknown act or agent, Invalid without the reason that an act needs, TransitionIllegal where the status
    forbids the act, and IdentityRefused where the agent's identity does.
    """
    act = ACTS.get(verb)
    if act is None:
        raise NotFound(f"the act must be one of {', '.join(ACTS)}, got {verb!r}")
    given = {"reason": reason} if act.asks_reason else {}
    act.service(agent_id=agent_id, actor=actor, **given)
    return act
