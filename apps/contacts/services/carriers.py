"""Choose the carrier of a channel's messages by its kind."""

from __future__ import annotations

from django.conf import settings

from apps.contacts.services.mail import Mail
from arbor.adapters.webhook import Webhook
from arbor.contacts.ports import Carrier
from arbor.contacts.values import ChannelKind


def carrier_of(kind: ChannelKind) -> Carrier:
    """Return the carrier of a channel kind that leaves this installation: mail or webhook."""
    if kind is ChannelKind.EMAIL:
        return Mail()
    if kind is ChannelKind.WEBHOOK:
        return Webhook(
            allow_http=settings.ARBOR_WEBHOOK_ALLOW_HTTP, allow_private=settings.ARBOR_WEBHOOK_ALLOW_PRIVATE
        )
    raise ValueError(f"messages of the kind {kind} are not carried anywhere")
