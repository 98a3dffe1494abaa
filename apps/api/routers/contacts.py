"""Messages between agents and people: inbox, outbox, channels."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.authentication import OPERATE
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, row_of_tenant
from apps.api.scope import answers_secret, own_transactions
from apps.contacts.models import Channel, OutboxMessage
from apps.contacts.services.channels import (
    NAME_LENGTH,
    TARGET_LENGTH,
    add_channel,
    create_test_message,
    deliver_test_message,
    redact_target,
    remove_channel,
    switch_channel,
)
from apps.contacts.services.inbox import inbox, mark_read
from apps.contacts.services.outbox import cancel_message, retry_message
from apps.fleet.contact import answer_message, message_agent
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from arbor.heartbeat.views import PERCEPT_LENGTH

router = Router()

_Text = Annotated[str, Field(min_length=1, max_length=PERCEPT_LENGTH)]


class MessageResource(Schema):
    """A message from an agent."""

    id: UUID
    agent_id: UUID
    kind: ChannelKind
    audience: Audience
    target: str = Field(description="Of a webhook the host only.")
    subject: str
    content: str
    status: DeliveryStatus
    attempts: int
    last_error: str
    heartbeat_id: UUID | None
    created_at: datetime
    sent_at: datetime | None
    read_at: datetime | None

    @classmethod
    def of(cls, message: OutboxMessage) -> MessageResource:
        """Return the resource of a row."""
        shown = {name: getattr(message, name) for name in cls.model_fields if name != "target"}
        return cls(**shown, target=redact_target(message))


class MessageInput(Input):
    """A message to an agent, or an answer to one of its messages."""

    text: _Text


class PerceptReceipt(Schema):
    """A message that an agent receives at its next heartbeat."""

    percept_id: UUID
    agent_id: UUID


class ChannelResource(Schema):
    """A delivery channel."""

    id: UUID
    name: str
    kind: ChannelKind
    audience: Audience
    agent_id: UUID | None = Field(description="Null: of all agents.")
    target: str = Field(description="Of a webhook the host only.")
    enabled: bool
    created_at: datetime

    @classmethod
    def of(cls, channel: Channel) -> ChannelResource:
        """Return the resource of a row."""
        shown = {name: getattr(channel, name) for name in cls.model_fields if name != "target"}
        return cls(**shown, target=redact_target(channel))


class NewChannelResource(Schema):
    """A new channel."""

    channel: ChannelResource
    secret: str = Field(description="The secret that signs a webhook's requests, shown once; else empty.")


class ChannelInput(Input):
    """A new channel."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
    kind: Annotated[
        ChannelKind, Field(description="inbox, email or webhook: no channel leads to another agent.")
    ]
    target: Annotated[str, Field(max_length=TARGET_LENGTH, examples=["ann@example.org"])] = ""
    audience: Audience = Audience.USER
    agent_id: UUID | None = None


@router.get("/inbox", response=ListPage[MessageResource], summary="List the inbox")
def list_inbox(
    request: HttpRequest, page: Paging, agent_id: UUID | None = None, unread: bool = False
) -> ListPage[MessageResource]:
    """List the messages from agents, the latest first."""
    rows = inbox(agent_id=agent_id, unread=unread)
    return page_of(rows, page, order="-created_at", to_resource=MessageResource.of)


@router.post("/inbox/{uuid:message_id}/read", response=MessageResource, summary="Read a message")
def read_message(request: HttpRequest, message_id: UUID) -> MessageResource:
    """Mark a message of the inbox as read."""
    return MessageResource.of(mark_read(message_id=message_id))


@router.post("/inbox/{uuid:message_id}/answer", response={201: PerceptReceipt}, summary="Answer a message")
def answer(request: HttpRequest, message_id: UUID, message: MessageInput) -> Status[PerceptReceipt]:
    """Answer a message: its agent reads the answer at its next heartbeat, which starts at once."""
    percept = answer_message(message_id=message_id, text=message.text, actor=access_of(request).actor)
    return Status(201, PerceptReceipt(percept_id=percept.id, agent_id=percept.agent_id))


@router.post("/agents/{uuid:agent_id}/messages", response={201: PerceptReceipt}, summary="Message an agent")
def send_message(request: HttpRequest, agent_id: UUID, message: MessageInput) -> Status[PerceptReceipt]:
    """Send an agent a message; its next heartbeat starts at once."""
    percept = message_agent(agent_id=agent_id, text=message.text, actor=access_of(request).actor)
    return Status(201, PerceptReceipt(percept_id=percept.id, agent_id=agent_id))


@router.get("/outbox", response=ListPage[MessageResource], summary="List the outbox")
def list_outbox(
    request: HttpRequest,
    page: Paging,
    agent_id: UUID | None = None,
    status: DeliveryStatus | None = None,
) -> ListPage[MessageResource]:
    """List outgoing messages and their delivery, the latest first."""
    rows = OutboxMessage.objects.all()
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    if status is not None:
        rows = rows.filter(status=status)
    return page_of(rows, page, order="-created_at", to_resource=MessageResource.of)


@router.get("/outbox/{uuid:message_id}", response=MessageResource, summary="Show a message")
def show_message(request: HttpRequest, message_id: UUID) -> MessageResource:
    """Show a message of an agent and its delivery."""
    return MessageResource.of(row_of_tenant(OutboxMessage, message_id))


@router.post(
    "/outbox/{uuid:message_id}/{verb}", response=MessageResource, summary="Retry or cancel a message"
)
def change_message(
    request: HttpRequest, message_id: UUID, verb: Literal["retry", "cancel"]
) -> MessageResource:
    """Retry a failed message, or cancel an unsent one."""
    change = retry_message if verb == "retry" else cancel_message
    return MessageResource.of(change(message_id=message_id, actor=access_of(request).actor))


@router.get("/channels", response=ListPage[ChannelResource], summary="List channels")
def list_channels(request: HttpRequest, page: Paging) -> ListPage[ChannelResource]:
    """List the delivery channels of the tenant and its agents by name."""
    return page_of(Channel.objects.defer("sealed_secret"), page, order="name", to_resource=ChannelResource.of)


@router.post("/channels", response={201: NewChannelResource}, auth=OPERATE, summary="Add a channel")
@answers_secret
def create_channel(request: HttpRequest, payload: ChannelInput) -> Status[NewChannelResource]:
    """Add a channel. The secret that signs a webhook's requests is shown once."""
    created = add_channel(**payload.model_dump(), actor=access_of(request).actor)
    return Status(201, NewChannelResource(channel=ChannelResource.of(created.channel), secret=created.secret))


@router.post(
    "/channels/{uuid:channel_id}/test-message",
    response=ChannelResource,
    auth=OPERATE,
    summary="Send a test message",
)
@own_transactions
def try_channel(request: HttpRequest, channel_id: UUID) -> ChannelResource:
    """Send a test message by a channel. A receiver that does not accept it is answered 502."""
    access = access_of(request)
    with tenant_transaction(access.tenant_id):
        channel = row_of_tenant(Channel, channel_id)
        message = create_test_message(channel, actor=access.actor)
    deliver_test_message(kind=ChannelKind(channel.kind), message=message)
    return ChannelResource.of(channel)


@router.post(
    "/channels/{uuid:channel_id}/{verb}",
    response=ChannelResource,
    auth=OPERATE,
    summary="Enable or disable a channel",
)
def change_channel(
    request: HttpRequest, channel_id: UUID, verb: Literal["enable", "disable"]
) -> ChannelResource:
    """Enable or disable a channel. Waiting messages of a disabled channel fail."""
    enabled = verb == "enable"
    return ChannelResource.of(
        switch_channel(channel_id=channel_id, enabled=enabled, actor=access_of(request).actor)
    )


@router.delete(
    "/channels/{uuid:channel_id}", response=ChannelResource, auth=OPERATE, summary="Remove a channel"
)
def delete_channel(request: HttpRequest, channel_id: UUID) -> ChannelResource:
    """Remove a channel. Its pending messages fail; sent ones stay on record."""
    row_of_tenant(Channel, channel_id)
    removed = remove_channel(channel_id=channel_id, actor=access_of(request).actor)
    removed.id = removed.id or channel_id
    return ChannelResource.of(removed)
