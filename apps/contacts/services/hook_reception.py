"""Receive the deliveries of other systems at hooks: verified, counted once, and turned into percepts."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db.models import F, Q
from django.utils import timezone

from apps.agents.models import Percept, PerceptKind
from apps.agents.services.percepts import create_percept
from apps.contacts.models import Hook, HookDelivery
from apps.contacts.services.signing_secrets import SecretPair
from apps.tenants.models import TenantStatus
from apps.tenants.scope import tenant_transaction
from arbor.contacts.hook_messages import read_message
from arbor.contacts.hook_signatures import VerifiedId, verify_delivery
from arbor.contacts.hooks import (
    HookDeliveryStatus,
    HookKind,
    HookMapping,
    HookMessage,
    parse_hook_key,
    wants_event,
)
from arbor.errors import Invalid, PermissionDenied, RateLimited, SignatureRefused
from arbor.ids import uuid7
from arbor.models.json_text import storable

log = structlog.get_logger(__name__)

#: Characters of a body that the log of deliveries has.
BODY_LENGTH = 16_000
#: Deliveries that may wait for an agent, which takes in five percepts at a heartbeat.
MAX_PENDING = 500
_PENDING_RETRY_S = 600
#: A refusal within this time of the last one that was stored writes nothing: anybody may send wrong signatures.
_REFUSAL_STORED_EVERY = timedelta(seconds=10)
_ERROR_LENGTH = 1_000
_REFUSAL_LENGTH = 300
#: The secret of the dummy signature where there is no hook.
_NO_SECRET = os.urandom(32)


@dataclass(frozen=True, kw_only=True)
class HookRequest:
    """A request at a hook, as it arrived; `headers` has lower-case names."""

    key: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class HookReceipt:
    """The result of a delivery."""

    delivery_id: UUID
    status: HookDeliveryStatus
    error: str = ""
    percept_id: UUID | None = None
    #: Whether the delivery had arrived before; nothing was done now.
    repeated: bool = False


def receive_delivery(request: HookRequest, *, count: Callable[[UUID], None]) -> HookReceipt:
    """Verify a delivery, and turn it into a percept of the hook's agent, once; the result is in the log of deliveries.

    `count` counts it against the limit of its hook. Raises SignatureRefused, alike for an unknown hook and a wrong signature;
    for a verified delivery PermissionDenied where the hook is off or the tenant suspended, and RateLimited.
    """
    now = timezone.now()
    tenant_id, hook_id = parse_hook_key(request.key)
    refusal: SignatureRefused | PermissionDenied
    with tenant_transaction(tenant_id):
        hook: Hook | None = Hook.objects.select_related("tenant").filter(id=hook_id).first()
        if hook is None:
            _compute_dummy_signature(request)
            raise SignatureRefused
        try:
            verified = _verify(hook, request, now)
            _require_active(hook)
        except (SignatureRefused, PermissionDenied) as error:
            _store_refusal(hook, str(error), now)
            refusal = error
        else:
            count(hook.id)
            return _accept(hook, request, verified, now)
    raise refusal


def _verify(hook: Hook, request: HookRequest, now: datetime) -> VerifiedId:
    return verify_delivery(
        kind=HookKind(hook.kind),
        header=hook.signature_header,
        secrets=SecretPair.of(hook, now=now).valid,
        headers=request.headers,
        body=request.body,
        now=now,
    )


def _compute_dummy_signature(request: HookRequest) -> None:
    """Compute a signature without a hook, so that the refusal takes as long as with one."""
    hmac.new(_NO_SECRET, request.body, hashlib.sha256).hexdigest()


def _require_active(hook: Hook) -> None:
    if hook.tenant.status != TenantStatus.ACTIVE:
        raise PermissionDenied("the tenant of the hook is suspended")
    if not hook.active:
        raise PermissionDenied("the hook is disabled")


def _store_refusal(hook: Hook, reason: str, now: datetime) -> None:
    log.warning("hook_delivery_refused", hook_id=str(hook.id), reason=reason)
    is_due = Q(refused_at=None) | Q(refused_at__lt=now - _REFUSAL_STORED_EVERY)
    Hook.objects.filter(is_due, id=hook.id).update(
        refused_at=now, last_refusal=storable(reason)[:_REFUSAL_LENGTH]
    )


def _accept(hook: Hook, request: HookRequest, verified: VerifiedId, now: datetime) -> HookReceipt:
    """Store a verified delivery, and create its percept. Raises RateLimited."""
    message, error = _read(hook, request)
    if message is None:
        status = HookDeliveryStatus.FAILED
    elif not wants_event(hook.events, message.event):
        status = HookDeliveryStatus.IGNORED
    else:
        status = HookDeliveryStatus.PERCEIVED
    delivery = HookDelivery(
        id=uuid7(),
        tenant_id=hook.tenant_id,
        hook=hook,
        once_key=verified.once_key,
        delivery_id=verified.delivery_id,
        event=storable(message.event) if message is not None else "",
        status=status,
        error=storable(error)[:_ERROR_LENGTH],
        percept_id=uuid7() if status is HookDeliveryStatus.PERCEIVED else None,
        body=storable(request.body.decode("utf-8", errors="replace"))[:BODY_LENGTH],
        at=now,
        tried_at=now,
    )
    known = _store(hook, delivery)
    if known is not None:
        return known
    if status is HookDeliveryStatus.PERCEIVED and message is not None:
        _perceive(hook, message, delivery)
    return HookReceipt(
        delivery_id=delivery.id, status=status, error=delivery.error, percept_id=delivery.percept_id
    )


def _read(hook: Hook, request: HookRequest) -> tuple[HookMessage | None, str]:
    """Return the message of a request, and what is wrong with it."""
    kind = HookKind(hook.kind)
    try:
        mapping = hook.rules if kind is HookKind.JSON else HookMapping()
        message = read_message(kind=kind, mapping=mapping, headers=request.headers, body=request.body)
    except Invalid as error:
        return None, str(error)
    return message, "; ".join(message.warnings)


def _store(hook: Hook, delivery: HookDelivery) -> HookReceipt | None:
    """Store a delivery; return the receipt of one that was processed before. A delivery that had failed is processed again."""
    made = HookDelivery.objects.bulk_create([delivery], ignore_conflicts=True)
    same = HookDelivery.objects.filter(hook=hook, once_key=delivery.once_key)
    row = same.select_for_update().defer("body").get()
    if row.id == made[0].id:
        return None
    if row.status != HookDeliveryStatus.FAILED:
        same.update(attempts=F("attempts") + 1, tried_at=delivery.tried_at)
        return HookReceipt(
            delivery_id=row.id,
            status=HookDeliveryStatus(row.status),
            percept_id=row.percept_id,
            repeated=True,
        )
    same.update(
        status=delivery.status,
        event=delivery.event,
        error=delivery.error,
        percept_id=delivery.percept_id,
        # The sender may have corrected the request.
        body=delivery.body,
        attempts=F("attempts") + 1,
        tried_at=delivery.tried_at,
    )
    delivery.id = row.id
    return None


def _perceive(hook: Hook, message: HookMessage, delivery: HookDelivery) -> None:
    """Create the percept of a delivery. Raises RateLimited where too many wait for the agent."""
    waiting = Percept.objects.filter(agent_id=hook.agent_id, heartbeat=None, kind=PerceptKind.WEBHOOK)
    if waiting[:MAX_PENDING].count() >= MAX_PENDING:
        raise RateLimited(
            f"{MAX_PENDING} deliveries wait for the agent; send this one again later",
            retry_after_s=_PENDING_RETRY_S,
        )
    about = {
        "hook": hook.name,
        "event": message.event,
        "from": message.sender,
        "link": message.link,
    }
    create_percept(
        percept_id=delivery.percept_id,
        agent_id=hook.agent_id,
        kind=PerceptKind.WEBHOOK,
        content=storable(message.content),
        actor=f"hook:{hook.name}",
        urgent=hook.urgent_from is not None and message.importance >= hook.urgent_from,
        detail={name: storable(text) for name, text in about.items() if text}
        | {"importance": message.importance},
    )
