"""Check the limits of reaching out: by the situation before a decision, by the outbox when it is executed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Max

from apps.agents.models import AgentState
from apps.contacts.models import OutboxMessage
from arbor.contacts.cooldown import REACH_OUT_USER, ContactLimits, refusals
from arbor.contacts.values import Audience, DeliveryStatus
from arbor.heartbeat.situation import Environment

#: No unanswered text is sent to users again within this number of cool-downs, 20 hours; less than a day, so that a daily report may stay
#: the same.
COOLDOWNS_BEFORE_REPEAT = 5
UNANSWERED_REPEAT = "you wrote the same to your user lately, and they have not written since; say something else, or wait for them"


def situation_refusals(environment: Environment) -> Mapping[str, str]:
    """Return the reasons to refuse reaching out, by action, from the situation, before the action is paid for."""
    return refusals(
        hours_since_reach_out=environment.hours_since_reach_out,
        hours_since_user=environment.hours_since_user,
        public_today=environment.published_today,
        limits=settings.ARBOR_CONTACT_LIMITS,
    )


def outbox_refusals(*, agent_id: UUID, key: str, text: str, now: datetime) -> Mapping[str, str]:
    """Return the reasons to refuse reaching out with a text, by action, from the outbox as it is now. Four queries.

    Earlier messages of the same heartbeat count, those of the decision being executed do not: their idempotency keys begin
    with `key`.
    """
    contact = (
        AgentState.objects.filter(agent_id=agent_id).values_list("last_user_contact_at", flat=True).first()
    )
    # A decision that is executed a second time must not be refused because of its own messages.
    messages = OutboxMessage.objects.filter(agent_id=agent_id).exclude(idempotency_key__startswith=key)
    latest = messages.filter(audience=Audience.USER).aggregate(at=Max("created_at"))["at"]
    today = messages.filter(audience=Audience.PUBLIC, created_at__gt=now - timedelta(hours=24))
    published = today.order_by().values("heartbeat_id", "content").distinct().count()
    limits: ContactLimits = settings.ARBOR_CONTACT_LIMITS
    since = now - COOLDOWNS_BEFORE_REPEAT * limits.cooldown
    since = max(since, contact or since)
    arriving = messages.exclude(status__in=(DeliveryStatus.FAILED, DeliveryStatus.CANCELLED))
    unanswered = arriving.filter(audience=Audience.USER, content=text, created_at__gt=since)
    reasons = refusals(
        hours_since_reach_out=_hours(latest, now),
        hours_since_user=_hours(contact, now),
        public_today=published,
        limits=limits,
    )
    return {REACH_OUT_USER: UNANSWERED_REPEAT, **reasons} if unanswered.exists() else reasons


def _hours(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max((now - moment) / timedelta(hours=1), 0.0)
