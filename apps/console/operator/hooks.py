"""Views of hooks: acts, new secrets, and the editor of their events and mappings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.operator.hook_forms import MappingForm
from apps.console.row_acts import RowAct, apply_act
from apps.console.views import console_page, refuse
from apps.contacts.models import Hook, SignalWebhook
from apps.contacts.services.hooks import HookWithSecret, delete_hook, rotate_hook_secret, switch_hook
from apps.contacts.services.signal_webhooks import WebhookWithSecret, rotate_webhook_secret
from apps.contacts.services.webhook_deliveries import resend_delivery
from apps.tenants.scope import APP
from arbor.contacts.hooks import HookKind
from arbor.errors import Invalid, NotFound


def _switch_on(request: HttpRequest, hook_id: UUID) -> str:
    return f"{switch_hook(hook_id=hook_id, active=True, actor=actor_of(request)).name} is on."


def _switch_off(request: HttpRequest, hook_id: UUID) -> str:
    hook = switch_hook(hook_id=hook_id, active=False, actor=actor_of(request))
    return f"{hook.name} is off; deliveries are refused."


def _delete(request: HttpRequest, hook_id: UUID) -> str:
    return f"{delete_hook(hook_id=hook_id, actor=actor_of(request)).name} is deleted."


def _resend(request: HttpRequest, delivery_id: UUID) -> str:
    resend_delivery(delivery_id=delivery_id, actor=actor_of(request))
    return "The delivery is sent again within seconds."


HOOK_ACTS: Mapping[str, RowAct] = MappingProxyType({"on": _switch_on, "off": _switch_off, "delete": _delete})
DELIVERY_ACTS: Mapping[str, RowAct] = MappingProxyType({"resend": _resend})


@require_POST
def act_on_hook(request: HttpRequest, hook_id: UUID) -> HttpResponse:
    """Apply the posted act to a hook, and redirect to the list of hooks with the result."""
    refusal = apply_act(request, HOOK_ACTS, hook_id, "hook")
    return refusal or HttpResponseRedirect(reverse("admin:contacts_hook_changelist"))


@require_POST
def act_on_delivery(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    """Apply the posted act to a delivery, and redirect to its page with the result."""
    refusal = apply_act(request, DELIVERY_ACTS, delivery_id, "delivery")
    return refusal or HttpResponseRedirect(reverse("admin:contacts_hookdelivery_change", args=[delivery_id]))


@require_POST
def rotate_hook(request: HttpRequest, hook_id: UUID) -> HttpResponse:
    """Give a hook a new secret, and show it once."""

    def rotate() -> tuple[Hook | SignalWebhook, str]:
        new: HookWithSecret = rotate_hook_secret(
            hook_id=hook_id, actor=actor_of(request), secret=request.POST.get("secret", "")
        )
        return new.hook, new.secret

    return _rotate(request, rotate, noun="hook", back=reverse("admin:contacts_hook_change", args=[hook_id]))


@require_POST
def rotate_webhook(request: HttpRequest, webhook_id: UUID) -> HttpResponse:
    """Give a webhook a new secret, and show it once."""

    def rotate() -> tuple[Hook | SignalWebhook, str]:
        new: WebhookWithSecret = rotate_webhook_secret(webhook_id=webhook_id, actor=actor_of(request))
        return new.webhook, new.secret

    back = reverse("admin:contacts_signalwebhook_change", args=[webhook_id])
    return _rotate(request, rotate, noun="webhook", back=back)


def _rotate(
    request: HttpRequest, rotate: Callable[[], tuple[Hook | SignalWebhook, str]], *, noun: str, back: str
) -> HttpResponse:
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"rotate the secret of a {noun}")
    try:
        with transaction.atomic(using=APP):
            row, secret = rotate()
    except Invalid as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
        return HttpResponseRedirect(back)
    return console_page(
        request,
        "console/new_secret.html",
        title=f"New secret of {row.name}",
        name=row.name,
        secret=secret,
        overlaps=row.previous_until is not None,
        noun=noun,
        back=back,
    )


@require_http_methods(["GET", "HEAD", "POST"])
def edit_hook(request: HttpRequest, hook_id: UUID) -> HttpResponse:
    """Show the events and the mapping of a hook; try or save what is posted."""
    require_member(request, to="see its hooks")
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"change the hook {hook_id}")
    hook: Hook | None = Hook.objects.select_related("agent").defer("sealed_secret").filter(id=hook_id).first()
    if hook is None:
        raise NotFound(f"there is no hook {hook_id} in this tenant")
    form = (
        MappingForm(request.POST)
        if request.method == "POST"
        else MappingForm(initial=MappingForm.values_of(hook))
    )
    trial = None
    if request.method == "POST" and form.is_valid():
        if request.POST.get("act") == "try":
            trial = form.trial()
        elif form.change(hook, actor=actor_of(request)) is not None:
            messages.success(request, f"{hook.name} is changed.")
            return HttpResponseRedirect(reverse("admin:contacts_hook_change", args=[hook.id]))
    if hook.kind != HookKind.JSON:
        for name in [name for name in form.fields if name not in ("events", "urgent_from")]:
            del form.fields[name]
    return console_page(
        request,
        "console/hook_edit.html",
        title=f"Change {hook.name}",
        hook=hook,
        form=form,
        trial=trial,
        has_mapping=hook.kind == HookKind.JSON,
    )
