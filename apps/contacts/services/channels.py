"""Manage delivery channels."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import Channel, OutboxMessage
from apps.contacts.services.carriers import carrier_of
from apps.tenants.keys import master_keys
from apps.tenants.limits import check_row_limit
from apps.tenants.names import find_by_name, insert_named_row, valid_row_name
from apps.tenants.scope import current_tenant
from arbor.adapters.webhook import check_url, redact_url
from arbor.contacts.ports import DeliverableMessage
from arbor.contacts.signing import SIGNING_SECRETS, new_secret
from arbor.contacts.values import Audience, ChannelKind
from arbor.errors import DeliveryFailed, Invalid, NotFound, SealBroken
from arbor.ids import uuid7

NAME_LENGTH = 60
TARGET_LENGTH = 500
#: The most channels of an agent, or of a tenant, for one audience: each message to the audience takes a row and a request per channel.
MAX_CHANNELS = 50


@dataclass(frozen=True, kw_only=True)
class ChannelWithSecret:
    """A new channel; `secret` signs a webhook's requests, and is shown only once."""

    channel: Channel
    secret: str = ""


def channels_for(*, agent_id: UUID, audience: Audience, platform: str = "") -> list[Channel]:
    """Return the enabled channels of an agent for an audience: its own, else its tenant's; empty means the inbox.

    With a platform, the one of that name. Raises NotFound with the names that exist.
    """
    channels = list(
        Channel.objects.filter(audience=audience, enabled=True, agent_id=agent_id)
        or Channel.objects.filter(audience=audience, enabled=True, agent_id__isnull=True)
    )
    if not platform:
        return channels
    chosen = [channel for channel in channels if channel.name.casefold() == platform.strip().casefold()]
    if not chosen:
        names = ", ".join(channel.name for channel in channels) or "only the inbox, which needs no name"
        raise NotFound(f"there is no channel {platform!r} for this; there is: {names}")
    return chosen


@transaction.atomic
def add_channel(
    *,
    name: str,
    kind: ChannelKind,
    audience: Audience,
    target: str,
    actor: str,
    agent_id: UUID | None = None,
) -> ChannelWithSecret:
    """Add a channel of an agent, or of all agents of the tenant that have none of their own for the audience.

    Raises Invalid for a wrong name or target, LimitReached, AlreadyExists, and ConfigurationInvalid without a master key.
    """
    name, target = (
        valid_row_name(name, whose="a channel's", longest=NAME_LENGTH),
        _valid_target(kind, target.strip()),
    )
    channel = Channel(
        id=uuid7(),
        tenant_id=current_tenant(),
        agent_id=agent_id,
        name=name,
        kind=kind,
        audience=audience,
        target=target,
    )
    check_row_limit(
        Channel.objects.filter(Q(agent_id=agent_id), audience=audience),
        most=MAX_CHANNELS,
        refusal=f"{'an agent' if agent_id else 'a tenant'} has at most {MAX_CHANNELS} channels for the audience {audience};"
        " remove one that is not needed",
    )
    secret = ""
    if kind is ChannelKind.WEBHOOK:
        secret = new_secret()
        channel.sealed_secret = SIGNING_SECRETS.seal(
            secret, keys=master_keys(), tenant_id=channel.tenant_id, row_id=channel.id
        )
    insert_named_row(channel, name, noun="channel", constraint="contacts_channel_name")
    _audit(channel, actor, f"added the channel {name}: {kind} for the audience {audience}")
    return ChannelWithSecret(channel=channel, secret=secret)


@transaction.atomic
def remove_channel(*, channel_id: UUID, actor: str) -> Channel:
    """Remove a channel. Its pending messages fail; sent ones stay on record. Raises NotFound."""
    channel = _lock_channel(channel_id)
    Channel.objects.filter(id=channel_id).delete()
    _audit(channel, actor, f"removed the channel {channel.name}")
    return channel


@transaction.atomic
def switch_channel(*, channel_id: UUID, enabled: bool, actor: str) -> Channel:
    """Enable or disable a channel. Pending messages of a disabled one fail. Raises NotFound."""
    channel = _lock_channel(channel_id)
    if channel.enabled != enabled:
        channel.enabled = enabled
        channel.save(update_fields=["enabled"])
        _audit(channel, actor, f"{'enabled' if enabled else 'disabled'} the channel {channel.name}")
    return channel


def channel_by_name(name: str) -> Channel:
    """Find the current tenant's channel by name; raises NotFound with the names that exist."""
    return find_by_name(
        Channel.objects.all(), name, noun="channel", advice="add one with `arbor contact channel add`"
    )


def redact_target(row: Channel | OutboxMessage) -> str:
    """Return the target of a channel or message in a form that may be shown; empty for the inbox.

    Of a webhook's URL only the host is shown, because the URL itself can be a secret.
    """
    target: str = row.target
    return redact_url(target) if row.kind == ChannelKind.WEBHOOK else target


def create_test_message(channel: Channel, *, actor: str) -> DeliverableMessage:
    """Create a test message of a channel, and audit the test. Raises DeliveryFailed for a secret that cannot be opened."""
    try:
        secret = secret_of(channel)
    except SealBroken as error:
        raise DeliveryFailed(str(error), final=True) from error
    _audit(channel, actor, f"tried the channel {channel.name}")
    message_id = uuid7()
    return DeliverableMessage(
        id=str(message_id),
        key=f"test:{message_id}",
        agent=channel.agent.name if channel.agent_id else "Arbor",
        audience=Audience(channel.audience),
        target=channel.target,
        subject="Arbor tries this channel",
        content=f"If you read this, the channel {channel.name} works. No agent wrote it, and nothing is asked of you.",
        heartbeat="",
        at=timezone.now(),
        secret=secret,
    )


def deliver_test_message(*, kind: ChannelKind, message: DeliverableMessage) -> None:
    """Deliver a test message, outside any transaction. Raises DeliveryFailed."""
    if kind is not ChannelKind.INBOX:
        carrier_of(kind).deliver(message)


def secret_of(channel: Channel) -> bytes:
    """Return the key that signs the channel's requests; empty for a channel without one. Raises SealBroken."""
    if not channel.sealed_secret:
        return b""
    return SIGNING_SECRETS.unseal(
        channel.sealed_secret,
        keys=master_keys(),
        tenant_id=channel.tenant_id,
        row_id=channel.id,
    ).raw


def _lock_channel(channel_id: UUID) -> Channel:
    channel: Channel | None = Channel.objects.select_for_update().filter(id=channel_id).first()
    if channel is None:
        raise NotFound(f"there is no channel {channel_id} in this tenant")
    return channel


def _valid_target(kind: ChannelKind, target: str) -> str:
    if len(target) > TARGET_LENGTH:
        raise Invalid(f"a target has at most {TARGET_LENGTH} characters, got {len(target):,}")
    if not target.isprintable():
        raise Invalid("a target has printable characters only")
    if kind is ChannelKind.PEER:
        raise Invalid("no channel leads to another agent: a public message that names it with @Name does")
    if kind is ChannelKind.INBOX:
        if target:
            raise Invalid(f"the inbox has no target, got {target!r}")
        return ""
    if kind is ChannelKind.EMAIL:
        try:
            validate_email(target)
        except ValidationError as error:
            raise Invalid(
                f"the target of a mail is one address, such as ann@example.org; got {target!r}"
            ) from error
        return target
    check_url(target, allow_http=settings.ARBOR_WEBHOOK_ALLOW_HTTP)
    return target


def _audit(channel: Channel, actor: str, message: str) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=channel.agent_id,
        message=message,
        detail={"channel": channel.name, "kind": channel.kind, "target": redact_target(channel)},
    )
