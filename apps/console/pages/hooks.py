"""Read the pages of hooks and webhooks by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.contacts.models import Hook, HookDelivery, SignalWebhook
from arbor.contacts.hooks import HOOKS_PATH

#: Deliveries on the page of a hook or webhook; the list has all of them.
DELIVERIES_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class HookPage:
    """The data of a hook's page."""

    hook: Hook
    #: The path on the API's process to which deliveries are posted.
    path: str
    deliveries: Sequence[HookDelivery]


def read_hook(hook: Hook) -> HookPage:
    """Read the data of a hook's page. One query."""
    return HookPage(
        hook=hook,
        path=f"{HOOKS_PATH}{hook.key}",
        deliveries=list(HookDelivery.objects.filter(hook=hook).defer("body")[:DELIVERIES_SHOWN]),
    )


def read_webhook_deliveries(webhook: SignalWebhook) -> list[HookDelivery]:
    """Read the latest deliveries of a webhook. One query."""
    return list(HookDelivery.objects.filter(webhook=webhook).defer("body")[:DELIVERIES_SHOWN])


def latest_deliveries(hook_ids: Sequence[UUID]) -> dict[UUID, HookDelivery]:
    """Return the latest delivery at each of these hooks. One query."""
    rows = HookDelivery.objects.filter(hook_id__in=hook_ids).defer("body")
    latest = rows.order_by("hook_id", "-at").distinct("hook_id")
    return {row.hook_id: row for row in latest if row.hook_id is not None}


def latest_body(hook: Hook) -> str:
    """Return the beginning of the latest body that a hook received, as a sample; nothing before the first one."""
    bodies = HookDelivery.objects.filter(hook=hook).values_list("body", flat=True)
    return str(bodies.first() or "")
