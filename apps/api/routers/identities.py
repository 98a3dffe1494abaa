"""Show, suspend, reinstate and revoke the identities of agents, and rotate their keys."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from apps.agents.services.identity import rotate_agent_key
from apps.agents.services.identity_profile import identity_entry, profile_of
from apps.api.authentication import ADMINISTER
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.fleet.identities import reinstate_identity, revoke_identity, suspend_identity
from arbor.agents.endorsement import REASON_LENGTH
from arbor.agents.profile import AgentProfile, IdentityEntry

router = Router()


class IdentityReason(Input):
    """The reason of a suspension or revocation."""

    reason: Annotated[
        str,
        Field(
            min_length=1,
            max_length=REASON_LENGTH,
            description="The reason is signed, and shown to everybody who asks why the agent does not act.",
            examples=["its key leaked"],
        ),
    ]


@router.get("/agents/{uuid:agent_id}/profile", response=AgentProfile, summary="Show an agent's profile")
def profile(request: HttpRequest, agent_id: UUID) -> AgentProfile:
    """Show who an agent is: character, requested trust tier and capabilities, and the public half of its identity."""
    return profile_of(agent_id)


@router.get("/agents/{uuid:agent_id}/identity", response=IdentityEntry, summary="Show an agent's identity")
def show(request: HttpRequest, agent_id: UUID) -> IdentityEntry:
    """Show the public half of an agent's identity: keys, keychain and endorsement, verified."""
    return identity_entry(agent_id)


@router.post(
    "/agents/{uuid:agent_id}/identity/suspend", response=IdentityEntry, summary="Suspend an agent's identity"
)
def suspend(request: HttpRequest, agent_id: UUID, why: IdentityReason) -> IdentityEntry:
    """Suspend an agent's identity: the agent has no heartbeats and answers nobody until the identity is reinstated."""
    suspend_identity(agent_id=agent_id, reason=why.reason, actor=access_of(request).actor)
    return identity_entry(agent_id)


@router.post(
    "/agents/{uuid:agent_id}/identity/reinstate",
    response=IdentityEntry,
    summary="Reinstate an agent's identity",
)
def reinstate(request: HttpRequest, agent_id: UUID) -> IdentityEntry:
    """End the suspension of an agent's identity; heartbeats of an active agent go on."""
    reinstate_identity(agent_id=agent_id, actor=access_of(request).actor)
    return identity_entry(agent_id)


@router.post(
    "/agents/{uuid:agent_id}/identity/revoke",
    response=IdentityEntry,
    auth=ADMINISTER,
    summary="Revoke an agent's identity",
)
def revoke(request: HttpRequest, agent_id: UUID, why: IdentityReason) -> IdentityEntry:
    """Revoke an agent's identity for good: it never acts again."""
    revoke_identity(agent_id=agent_id, reason=why.reason, actor=access_of(request).actor)
    return identity_entry(agent_id)


@router.post(
    "/agents/{uuid:agent_id}/identity/rotate", response=IdentityEntry, summary="Rotate an agent's keys"
)
def rotate(request: HttpRequest, agent_id: UUID) -> IdentityEntry:
    """Replace an agent's keys. The new signing key is signed by the previous key, and the public id stays."""
    rotate_agent_key(agent_id=agent_id, actor=access_of(request).actor)
    return identity_entry(agent_id)
