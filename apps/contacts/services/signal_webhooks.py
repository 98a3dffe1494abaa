"""Manage the webhooks that get the signals of a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import SignalWebhook
from apps.contacts.services.signing_secrets import OVERLAP, SecretPair, rotate_secret, seal_pair
from apps.signals.services.reading import SignalFilter, horizon
from apps.tenants.limits import check_row_limit
from apps.tenants.names import find_by_name, insert_named_row, valid_row_name
from apps.tenants.scope import current_tenant
from arbor.adapters.webhook import check_url, redact_url
from arbor.contacts.standard_webhooks import new_standard_secret
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7

#: Webhooks of a tenant at most: each costs requests whenever something happens.
MAX_WEBHOOKS = 20
MAX_NAMES = 100
NAME_LENGTH = 60
URL_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class WebhookWithSecret:
    """A webhook with a new secret, which signs its requests and is shown only once."""

    webhook: SignalWebhook
    secret: str = field(repr=False)


@transaction.atomic
def create_webhook(
    *, name: str, url: str, actor: str, signals: Sequence[str] = (), agent_id: UUID | None = None
) -> WebhookWithSecret:
    """Create a webhook that gets the signals from now on: those of these names, of one agent or of all.

    Raises Invalid for a wrong name, URL or name of a signal, AlreadyExists, and LimitReached.
    """
    wanted = [text.strip() for text in signals]
    webhook = SignalWebhook(
        id=uuid7(),
        tenant_id=current_tenant(),
        name=valid_row_name(name, whose="a webhook's", longest=NAME_LENGTH),
        url=_valid_url(url.strip()),
        signals=_valid_signals(wanted),
        agent_id=agent_id,
        position=str(horizon()),
    )
    check_row_limit(
        SignalWebhook.objects.all(),
        most=MAX_WEBHOOKS,
        refusal=f"a tenant has at most {MAX_WEBHOOKS} webhooks; delete one that is not needed",
    )
    secret = new_standard_secret()
    webhook.sealed_secret = seal_pair(SecretPair(current=secret), row=webhook)
    insert_named_row(webhook, webhook.name, noun="webhook", constraint="contacts_signalwebhook_name")
    _audit(webhook, actor, f"created the webhook {webhook.name}")
    return WebhookWithSecret(webhook=webhook, secret=secret)


@transaction.atomic
def switch_webhook(*, webhook_id: UUID, active: bool, actor: str) -> SignalWebhook:
    """Pause or resume a webhook. A resumed one continues after the last confirmed signal. Raises NotFound."""
    webhook = _lock_webhook(webhook_id)
    if webhook.active != active:
        webhook.active = active
        webhook.failures, webhook.failing_since, webhook.due_at = 0, None, timezone.now()
        webhook.save(update_fields=["active", "failures", "failing_since", "due_at"])
        _audit(webhook, actor, f"{'resumed' if active else 'paused'} the webhook {webhook.name}")
    return webhook


@transaction.atomic
def rotate_webhook_secret(*, webhook_id: UUID, actor: str) -> WebhookWithSecret:
    """Give a webhook a new secret. For OVERLAP, the previous secret signs its requests too, if it can be opened. Raises NotFound."""
    webhook, secret = _lock_webhook(webhook_id), new_standard_secret()
    rotate_secret(webhook, new=secret, overlap=OVERLAP)
    _audit(webhook, actor, f"rotated the secret of the webhook {webhook.name}")
    return WebhookWithSecret(webhook=webhook, secret=secret)


@transaction.atomic
def delete_webhook(*, webhook_id: UUID, actor: str) -> SignalWebhook:
    """Delete a webhook; its signals stay on record. Raises NotFound."""
    webhook = _lock_webhook(webhook_id)
    SignalWebhook.objects.filter(id=webhook_id).delete()
    _audit(webhook, actor, f"deleted the webhook {webhook.name}")
    return webhook


def webhook_by_name(name: str) -> SignalWebhook:
    """Find the current tenant's webhook by name; raises NotFound with the names that exist."""
    return find_by_name(
        SignalWebhook.objects.all(),
        name,
        noun="webhook",
        advice="create one with `arbor contact webhook create`",
    )


def signal_filter_of(webhook: SignalWebhook) -> SignalFilter:
    """Return the filter of a webhook's signals. Raises Invalid for a name that no signal has any more."""
    return SignalFilter.of(agents=[webhook.agent_id] if webhook.agent_id else [], names=webhook.signals)


def _lock_webhook(webhook_id: UUID) -> SignalWebhook:
    webhook: SignalWebhook | None = SignalWebhook.objects.select_for_update().filter(id=webhook_id).first()
    if webhook is None:
        raise NotFound(f"there is no webhook {webhook_id} in this tenant")
    return webhook


def _valid_url(url: str) -> str:
    if len(url) > URL_LENGTH:
        raise Invalid(f"a webhook's URL has at most {URL_LENGTH} characters, got {len(url):,}")
    if not url.isprintable():
        raise Invalid("a webhook's URL has printable characters only")
    check_url(url, allow_http=settings.ARBOR_WEBHOOK_ALLOW_HTTP)
    return url


def _valid_signals(names: list[str]) -> list[str]:
    if len(names) > MAX_NAMES:
        raise Invalid(f"a webhook has at most {MAX_NAMES} names of signals, got {len(names)}")
    SignalFilter.of(names=names)
    return names


def _audit(webhook: SignalWebhook, actor: str, message: str) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=webhook.agent_id,
        message=message,
        detail={"webhook": webhook.name, "to": redact_url(webhook.url), "signals": webhook.signals},
    )
