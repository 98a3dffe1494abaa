"""A worker that answers turns of conversations in a thread, by a scripted model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from uuid import UUID

import pytest
from django.conf import settings

from apps.contacts.models import ChatMessage
from apps.contacts.services.chat import answer_turn
from apps.heartbeats.services.calls import calls
from apps.heartbeats.services.calls.calls import execute_call
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from arbor.models.ports import ScriptedModel, ScriptedStream, ScriptLine
from tests.support.threads import in_own_connection


def reply_text(reply: str, thinking: str = "") -> str:
    """Return the JSON that a model answers with in a conversation."""
    return json.dumps({"thinking": thinking, "reply": reply})


def streamed(reply: str, size: int = 6) -> ScriptedStream:
    """Return a scripted stream of a reply, in parts of `size` characters."""
    text = reply_text(reply)
    return ScriptedStream(pieces=[text[at : at + size] for at in range(0, len(text), size)])


@contextmanager
def chat_worker(
    tenant_id: UUID, monkeypatch: pytest.MonkeyPatch, *lines: ScriptLine
) -> Iterator[ScriptedModel]:
    """Answer the turns of a tenant by a script while the block runs."""
    model = ScriptedModel(*lines)
    monkeypatch.setattr(calls, "model_for", lambda _handle: model)
    monkeypatch.setattr(settings, "ARBOR_DEFAULT_MODEL", model.handle)
    ends = threading.Event()
    thread = in_own_connection(partial(_work, tenant_id, ends))
    try:
        yield model
    finally:
        ends.set()
        thread.join()


def _work(tenant_id: UUID, ends: threading.Event) -> None:
    answered: set[UUID] = set()
    while not ends.wait(0.02):
        with tenant_transaction(tenant_id):
            turns = set(ChatMessage.objects.filter(speaker=Speaker.USER).values_list("id", flat=True))
        for turn_id in turns - answered:
            answered.add(turn_id)
            answer_turn(tenant_id=tenant_id, turn_id=turn_id, execute=execute_call)
