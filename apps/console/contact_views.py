"""Views of the inbox, and of the forms on the pages of messages, channels and webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.pages.contacts import read_inbox
from apps.console.row_acts import RowAct, apply_act
from apps.console.views import console_page, posted_text
from apps.contacts.services.channels import remove_channel, switch_channel
from apps.contacts.services.inbox import mark_read
from apps.contacts.services.outbox import cancel_message, retry_message
from apps.contacts.services.signal_webhooks import delete_webhook, switch_webhook
from apps.fleet.contact import answer_message
from arbor.ids import read_id


@require_safe
def show_inbox(request: HttpRequest) -> HttpResponse:
    """Show the messages that agents wrote to the people of the tenant."""
    require_member(request, to="read its inbox")
    before = read_id(request.GET.get("before", ""))
    return console_page(
        request,
        "console/inbox.html",
        title="Inbox",
        page=read_inbox(only_unread=request.GET.get("unread") == "1", before=before),
        may_operate=has_right(request, Right.OPERATE),
    )


def _mark_read(_request: HttpRequest, message_id: UUID) -> str:
    mark_read(message_id=message_id)
    return "The message is marked as read."


def _answer(request: HttpRequest, message_id: UUID) -> str:
    percept = answer_message(message_id=message_id, text=posted_text(request), actor=actor_of(request))
    return f"{percept.agent.name} receives the answer at its next heartbeat."


def _retry(request: HttpRequest, message_id: UUID) -> str:
    retry_message(message_id=message_id, actor=actor_of(request))
    return "Delivery is retried at once."


def _cancel(request: HttpRequest, message_id: UUID) -> str:
    cancel_message(message_id=message_id, actor=actor_of(request))
    return "The message is withdrawn."


def _enable(request: HttpRequest, channel_id: UUID) -> str:
    channel = switch_channel(channel_id=channel_id, enabled=True, actor=actor_of(request))
    return f"{channel.name} is enabled."


def _disable(request: HttpRequest, channel_id: UUID) -> str:
    channel = switch_channel(channel_id=channel_id, enabled=False, actor=actor_of(request))
    return f"{channel.name} is disabled."


def _remove(request: HttpRequest, channel_id: UUID) -> str:
    return f"{remove_channel(channel_id=channel_id, actor=actor_of(request)).name} is removed."


def _pause_webhook(request: HttpRequest, webhook_id: UUID) -> str:
    webhook = switch_webhook(webhook_id=webhook_id, active=False, actor=actor_of(request))
    return f"{webhook.name} is paused; its signals wait."


def _resume_webhook(request: HttpRequest, webhook_id: UUID) -> str:
    webhook = switch_webhook(webhook_id=webhook_id, active=True, actor=actor_of(request))
    return f"{webhook.name} continues after the last confirmed signal."


def _delete_webhook(request: HttpRequest, webhook_id: UUID) -> str:
    return f"{delete_webhook(webhook_id=webhook_id, actor=actor_of(request)).name} is deleted."


MESSAGE_ACTS: Mapping[str, RowAct] = MappingProxyType(
    {"read": _mark_read, "answer": _answer, "retry": _retry, "cancel": _cancel}
)
CHANNEL_ACTS: Mapping[str, RowAct] = MappingProxyType(
    {"enable": _enable, "disable": _disable, "remove": _remove}
)

WEBHOOK_ACTS: Mapping[str, RowAct] = MappingProxyType(
    {"pause": _pause_webhook, "resume": _resume_webhook, "delete": _delete_webhook}
)


@require_POST
def act_on_message(request: HttpRequest, message_id: UUID) -> HttpResponse:
    """Apply the posted act to a message, and redirect to its page with the result."""
    refusal = apply_act(request, MESSAGE_ACTS, message_id, "message")
    return refusal or HttpResponseRedirect(reverse("admin:contacts_outboxmessage_change", args=[message_id]))


@require_POST
def act_on_channel(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Apply the posted act to a channel, and redirect to the list of channels with the result."""
    refusal = apply_act(request, CHANNEL_ACTS, channel_id, "channel")
    return refusal or HttpResponseRedirect(reverse("admin:contacts_channel_changelist"))


@require_POST
def act_on_webhook(request: HttpRequest, webhook_id: UUID) -> HttpResponse:
    """Apply the posted act to a webhook, and redirect to the list of webhooks with the result."""
    refusal = apply_act(request, WEBHOOK_ACTS, webhook_id, "webhook")
    return refusal or HttpResponseRedirect(reverse("admin:contacts_signalwebhook_changelist"))
