"""The page of an agent's subscriptions to signals: listed, added and ended."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.agents.models import Agent
from apps.agents.services.lookup import agent_by_id
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.forms import agent_choices, agent_named
from apps.console.views import console_page, refuse
from apps.knowledge.models import SignalSubscription
from apps.knowledge.services.subscriptions import (
    NewSubscription,
    source_of,
    subscribe,
    subscriptions_of,
    unsubscribe,
)
from apps.tenants.scope import APP
from arbor.errors import ArborError, Invalid, NotFound
from arbor.ids import read_id
from arbor.knowledge.subscriptions import SignalSource
from arbor.signals import CATALOGUE


@dataclass(frozen=True, kw_only=True)
class SubscriptionLine:
    """A subscription as a row of the page."""

    row: SignalSubscription
    about: str


@dataclass(frozen=True, kw_only=True)
class SubscriptionsPage:
    """The subscriptions of an agent, and what the form offers."""

    agent: Agent
    lines: list[SubscriptionLine]
    #: Names of signals with their meanings.
    signals: list[tuple[str, str]]
    peers: list[str]
    may_operate: bool


@require_http_methods(["GET", "HEAD", "POST"])
def show_subscriptions(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Show the signals that an agent is subscribed to; add or end a posted subscription."""
    require_member(request, to="see the subscriptions of its agents")
    agent = agent_by_id(agent_id)
    if request.method == "POST":
        if not has_right(request, Right.OPERATE):
            return refuse(request, agent_id=agent_id, attempted="change the subscriptions of an agent")
        _apply(request, agent)
        return HttpResponseRedirect(reverse("admin:agent-subscriptions", args=[agent_id]))
    page = SubscriptionsPage(
        agent=agent,
        lines=[SubscriptionLine(row=row, about=_about(row)) for row in subscriptions_of(agent.id)],
        signals=[(name.value, kind.meaning) for name, kind in sorted(CATALOGUE.items())],
        peers=[name for _, name in agent_choices() if name != agent.name],
        may_operate=has_right(request, Right.OPERATE),
    )
    title = f"Subscriptions of {agent.name}"
    return console_page(request, "console/agent_subscriptions.html", title=title, page=page)


def _apply(request: HttpRequest, agent: Agent) -> None:
    try:
        with transaction.atomic(using=APP):
            if request.POST.get("act") == "end":
                row = _end(request, agent)
                done = f"{agent.name} is no longer subscribed to {', '.join(row.names)}."
            else:
                row = subscribe(agent_id=agent.id, wanted=_wanted(request), actor=actor_of(request))
                done = f"{agent.name} is subscribed to {', '.join(row.names)}."
    except ArborError as refusal:
        messages.error(request, f"Nothing was changed: {refusal}.")
    else:
        messages.success(request, done)


def _end(request: HttpRequest, agent: Agent) -> SignalSubscription:
    subscription_id = read_id(request.POST.get("subscription", ""))
    if subscription_id is None:
        raise NotFound("name one of the subscriptions on this page")
    return unsubscribe(agent_id=agent.id, subscription_id=subscription_id, actor=actor_of(request))


def _wanted(request: HttpRequest) -> NewSubscription:
    about, named = request.POST.get("about", ""), request.POST.get("peer", "").strip()
    is_peer = about not in (SignalSource.SHARED, SignalSource.OWN)
    if named and not is_peer:
        raise Invalid(
            f"choose another agent to subscribe to the signals of {named[:60]!r}, or leave the name out"
        )
    peer = agent_named(named) if is_peer else None
    if is_peer and peer is None:
        raise Invalid("there is no such agent; write the name or id of the other agent")
    return NewSubscription(
        names=request.POST.get("names", "").replace(",", " ").split(),
        source=SignalSource.PEER if is_peer else SignalSource(about),
        peer_id=peer.id if peer is not None else None,
    )


def _about(row: SignalSubscription) -> str:
    words = {SignalSource.SHARED: "what the agents share", SignalSource.OWN: "itself"}
    return words.get(source_of(row)) or str(row.source)
