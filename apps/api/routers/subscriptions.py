"""Subscriptions of agents to signals."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.requests import access_of
from apps.api.rows import Input
from apps.knowledge.models import SignalSubscription
from apps.knowledge.services.subscriptions import (
    NewSubscription,
    source_of,
    subscribe,
    subscriptions_of,
    unsubscribe,
)
from arbor.knowledge.subscriptions import MAX_NAMES, NAME_LENGTH, SignalSource

router = Router()

_Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]


class SubscriptionResource(Schema):
    """A subscription of an agent."""

    id: UUID
    names: list[str] = Field(description="Names of signals, or patterns.", examples=[["memory.goal_*"]])
    source: SignalSource = Field(
        description="What the signals are about: the agent itself, a peer, or what the tenant's agents share."
    )
    peer_id: UUID | None = Field(description="The peer; null for the other sources.")
    created_by: str
    created_at: datetime

    @classmethod
    def of(cls, row: SignalSubscription) -> SubscriptionResource:
        """Return the resource of a row."""
        source = source_of(row)
        return cls(
            id=row.id,
            names=row.names,
            source=source,
            peer_id=row.source_id if source is SignalSource.PEER else None,
            created_by=row.created_by,
            created_at=row.created_at,
        )


class SubscriptionList(Schema):
    """The subscriptions of an agent."""

    items: list[SubscriptionResource]


class SubscriptionInput(Input):
    """A wanted subscription."""

    names: list[_Name] = Field(min_length=1, max_length=MAX_NAMES)
    source: SignalSource
    peer_id: UUID | None = Field(default=None, description="The peer, with the source peer.")


@router.get("/agents/{uuid:agent_id}/subscriptions", response=SubscriptionList, summary="List subscriptions")
def list_all(request: HttpRequest, agent_id: UUID) -> SubscriptionList:
    """List the signals that an agent is subscribed to."""
    return SubscriptionList(items=[SubscriptionResource.of(row) for row in subscriptions_of(agent_id)])


@router.post(
    "/agents/{uuid:agent_id}/subscriptions",
    response={201: SubscriptionResource},
    summary="Subscribe an agent to signals",
)
def add(
    request: HttpRequest, agent_id: UUID, subscription: SubscriptionInput
) -> Status[SubscriptionResource]:
    """Subscribe an agent to signals: its next prompt includes them, counted by name and source."""
    row = subscribe(
        agent_id=agent_id,
        wanted=NewSubscription(
            names=subscription.names, source=subscription.source, peer_id=subscription.peer_id
        ),
        actor=access_of(request).actor,
    )
    return Status(201, SubscriptionResource.of(row))


@router.delete(
    "/agents/{uuid:agent_id}/subscriptions/{uuid:subscription_id}",
    response=SubscriptionResource,
    summary="End a subscription",
)
def remove(request: HttpRequest, agent_id: UUID, subscription_id: UUID) -> SubscriptionResource:
    """End a subscription of an agent."""
    row = unsubscribe(agent_id=agent_id, subscription_id=subscription_id, actor=access_of(request).actor)
    return SubscriptionResource.of(row)
