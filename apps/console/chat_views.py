"""Views of conversations with an agent.

A worker of the model queue answers the row of a person's turn; meanwhile the page shows the partial reply, or without
scripts reloads until the answer is there. No request waits for a model, which would keep its transaction open.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.agents.services.lookup import agent_by_id
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.pages.contacts import read_chat, read_partial_reply
from apps.console.views import console_page, posted_text, refuse
from apps.contacts.services.chat import end_session, open_session, receive_turn
from apps.tenants.scope import APP
from arbor.errors import Invalid, NotFound
from arbor.ids import read_id


@require_http_methods(["GET", "POST"])
def chat_with_agent(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Show the agent's conversations; operators can also post a turn, or end their conversation."""
    require_member(request, to="see what its agents say")
    if request.GET.get("part") == "reply":
        return _partial_reply(request, agent_id)
    if request.method == "GET":
        return _page(request, agent_id, conversation=_conversation(request))
    if not has_right(request, Right.OPERATE):
        return refuse(request, agent_id=agent_id, attempted=f"talk to agent {agent_id}")
    return _end(request, agent_id) if request.POST.get("act") == "end" else _say(request, agent_id)


def _partial_reply(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Return the reply so far; once the answer is stored, the browser reloads the page."""
    agent = agent_by_id(agent_id)
    partial = read_partial_reply(agent, person=actor_of(request))
    if partial is None:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "console/parts/partial_reply.html", {"name": agent.name, "partial": partial})


def _say(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    text = posted_text(request)
    try:
        with transaction.atomic(using=APP):
            session = open_session(agent_id=agent_id, person=actor_of(request))
            receive_turn(session_id=session.id, text=text)
    except Invalid as refusal:
        messages.error(request, f"Nothing was sent: {refusal}.")
        return _page(request, agent_id, draft=text)
    return _back(agent_id)


def _end(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    session = read_chat(agent_by_id(agent_id), person=actor_of(request), may_talk=True).session
    if session is None:
        messages.info(request, "The conversation was over already.")
        return _back(agent_id)
    try:
        with transaction.atomic(using=APP):
            ended = end_session(session_id=session.id)
    except Invalid as refusal:
        messages.error(request, f"The conversation was not ended: {refusal}.")
        return _back(agent_id)
    follows = (
        "a heartbeat follows at once" if ended.heartbeat_follows else "no heartbeat follows because of it"
    )
    messages.success(request, f"The conversation is over; significance {ended.significance:.2f}: {follows}.")
    return _back(agent_id)


def _conversation(request: HttpRequest) -> UUID | None:
    wanted = request.GET.get("conversation", "")
    conversation = read_id(wanted)
    if wanted and conversation is None:
        raise NotFound("there is no such conversation")
    return conversation


def _back(agent_id: UUID) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('admin:agent-chat', args=[agent_id])}#latest")


def _page(request: HttpRequest, agent_id: UUID, **shown: Any) -> HttpResponse:
    agent = agent_by_id(agent_id)
    page = read_chat(agent, person=actor_of(request), may_talk=has_right(request, Right.OPERATE), **shown)
    return console_page(
        request,
        "console/chat.html",
        title=f"Talking with {agent.name}",
        opts=agent._meta,
        original=agent,
        page=page,
    )
