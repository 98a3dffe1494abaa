"""OpenAI's protocol, by the `openai` package, other clients and a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from apps.agents.models import Agent
from apps.calls.models import LedgerEntry
from apps.contacts.models import ChatMessage, ChatSession
from apps.memories.models import Memory
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from arbor.errors import ModelTimeout, ModelUnavailable
from arbor.models.ports import ScriptedStream
from tests.factories.selves import BoundaryFactory
from tests.integration.api.test_server import server
from tests.support.api import Caller, caller_of
from tests.support.chat import chat_worker, reply_text, streamed

__all__ = ["server"]

REPLY = "The tide is high now. The bridge opens at nine. Come at eight!"


@pytest.fixture
def client(server: str, tenant: Tenant) -> Iterator[openai.OpenAI]:
    """Return the package's client with an operator's token."""
    token = caller_of(tenant, Role.OPERATOR).token
    with openai.OpenAI(base_url=f"{server}/v1", api_key=token, timeout=120) as client:
        yield client


def test_the_openai_package_converses_with_an_agent(
    client: openai.OpenAI,
    tenant: Tenant,
    vega: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [(model.id, model.owned_by) for model in client.models.list()] == [("Vega", "acme")]
    assert client.models.retrieve("Vega").id == "Vega"
    messages: list[Any] = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": [{"type": "text", "text": "When may I come?"}]},
    ]
    with chat_worker(tenant.id, monkeypatch, reply_text(REPLY), streamed(REPLY)) as model:
        whole = client.chat.completions.create(model="vega", messages=messages, temperature=0.1)
        choice = whole.choices[0]
        assert (choice.message.content, choice.finish_reason) == (REPLY, "stop")
        assert whole.usage is not None
        assert whole.usage.total_tokens == 0
        messages += [
            {"role": "assistant", "content": REPLY},
            {"role": "user", "content": "And tomorrow?"},
        ]
        chunks = list(
            client.chat.completions.create(
                model="Vega", messages=messages, stream=True, stream_options={"include_usage": True}
            )
        )
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == REPLY
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:-1]] == ["stop"]
    assert chunks[-1].usage is not None
    assert "You are a pirate." in model.requests[0].messages[0].content
    assert "pirate" not in model.requests[0].system
    assert "The bridge opens at nine" in model.requests[1].messages[0].content
    with tenant_transaction(tenant.id):
        session = ChatSession.objects.get()
        assert session.person == "token:operator {}"
        assert ChatMessage.objects.filter(session=session).count() == 4
        remembered = Memory.objects.filter(agent_id=vega["id"], session=f"chat:{session.id}")
        assert remembered.count() == 4
        assert LedgerEntry.objects.count() == 2


def test_the_openai_package_raises_errors_by_their_kind(
    client: openai.OpenAI,
    tenant: Tenant,
    vega: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages: list[Any] = [{"role": "user", "content": "When may I come?"}]
    with pytest.raises(openai.NotFoundError, match="there is no agent 'Nobody'"):
        client.chat.completions.create(model="Nobody", messages=messages)
    with pytest.raises(openai.BadRequestError, match="last message of the role user"):
        client.chat.completions.create(model="Vega", messages=[{"role": "system", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="n: "):
        client.chat.completions.create(model="Vega", messages=messages, n=3)
    with pytest.raises(openai.AuthenticationError, match="token"):
        client.with_options(api_key="sk-nonsense").models.list()
    viewer = client.with_options(api_key=caller_of(tenant, Role.VIEWER).token)
    with pytest.raises(openai.PermissionDeniedError, match="operator"):
        viewer.chat.completions.create(model="Vega", messages=messages)
    broken = ScriptedStream(
        pieces=['{"thinking": "", "reply": "One thing is sure. And'], error=ModelUnavailable("cut")
    )
    with chat_worker(tenant.id, monkeypatch, ModelTimeout("too slow"), broken):
        with pytest.raises(openai.InternalServerError, match="too slow") as failure:
            client.chat.completions.create(model="Vega", messages=messages)
        assert failure.value.status_code == 504
        with pytest.raises(openai.APIError, match="cut"):
            list(client.chat.completions.create(model="Vega", messages=messages, stream=True))
    with tenant_transaction(tenant.id):
        # The package has not repeated the failed requests.
        assert ChatMessage.objects.filter(speaker=Speaker.USER).count() == 2


def test_the_openai_package_embeds_texts(client: openai.OpenAI, vega: dict[str, Any]) -> None:
    texts = ["The tide is high.", "The river is frozen."]
    packed = client.embeddings.create(model="default", input=texts)
    plain = client.embeddings.create(model=packed.model, input=texts[0], encoding_format="float")

    assert [item.index for item in packed.data] == [0, 1]
    assert np.allclose(packed.data[0].embedding, plain.data[0].embedding)
    assert np.isclose(np.linalg.norm(plain.data[0].embedding), 1.0)
    assert packed.usage.prompt_tokens > 0
    length = len(plain.data[0].embedding)
    assert client.embeddings.create(model="default", input="a", dimensions=length).data
    invalid_inputs: list[Any] = [[1, 2], "", []]
    for invalid in invalid_inputs:
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model="default", input=invalid)
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model="default", input="a", dimensions=3)
    with pytest.raises(openai.NotFoundError, match="no embedder 'text-embedding-3-small'"):
        client.embeddings.create(model="text-embedding-3-small", input="a")


def test_a_boundary_ends_the_stream_as_a_content_filter(
    client: openai.OpenAI, tenant: Tenant, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_transaction(tenant.id):
        BoundaryFactory(
            agent=Agent.objects.get(id=vega["id"]), name="gate", patterns=["gate code"], examples=[]
        )
    text = "The tide is high now. The gate code is 4711. Come at eight!"
    with chat_worker(tenant.id, monkeypatch, streamed(text)):
        chunks = list(
            client.chat.completions.create(
                model="Vega", messages=[{"role": "user", "content": "When?"}], stream=True, user="nora"
            )
        )

    shown = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    # The reader may poll for the first time only when the answer is stored.
    assert shown.removeprefix("The tide is high now.\n\n").startswith("I do not say what I was about to say")
    assert "4711" not in shown
    assert chunks[-1].choices[0].finish_reason == "content_filter"
    with tenant_transaction(tenant.id):
        assert ChatSession.objects.get().person == "api:nora"


def test_a_request_with_fields_of_chat_clients_is_answered(
    server: str, tenant: Tenant, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Send the fields and headers of Open WebUI, the AI SDK, LangChain and LiteLLM together."""
    payload = {
        "model": "Vega",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "When?"}], "name": "nora"},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "user", "content": "And now?"},
        ],
        "max_completion_tokens": 100,
        "parallel_tool_calls": True,
        "reasoning_effort": "low",
        "response_format": {"type": "text"},
        "stop": ["\n"],
        "store": False,
        "stream": False,
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "top_p": 1,
    }
    token = caller_of(tenant, Role.OPERATOR).token
    headers = {"X-OpenWebUI-User-Name": "N%C3%B3ra", "X-OpenWebUI-Chat-Id": "c1", "X-Stainless-Lang": "js"}
    with chat_worker(tenant.id, monkeypatch, reply_text(REPLY)):
        answered = httpx.post(
            f"{server}/v1/chat/completions",
            json=payload,
            headers={**headers, "Authorization": f"Bearer {token}"},
            timeout=120,
        )
    assert answered.json()["choices"][0]["message"]["content"] == REPLY
    with tenant_transaction(tenant.id):
        assert ChatSession.objects.get().person == "api:Nóra"
        assert ChatMessage.objects.filter(speaker=Speaker.USER).get().content == "And now?"


def test_a_client_that_disconnects_loses_no_turn(
    server: str, tenant: Tenant, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = caller_of(tenant, Role.OPERATOR)
    payload = {"model": "Vega", "messages": [{"role": "user", "content": "When?"}], "stream": True}
    headers = {"Authorization": f"Bearer {caller.token}", "X-Conversation-ID": "harbour"}
    url = f"{server}/v1/chat/completions"
    with httpx.stream("POST", url, json=payload, headers=headers, timeout=60) as aborted:
        assert aborted.headers["content-type"] == "text/event-stream"
        next(aborted.iter_lines())

    with httpx.stream("POST", url, json=payload, headers=headers, timeout=120) as repeated:
        received = repeated.iter_lines()
        # Once the turn is answered, the same words are a new one: the answer comes after the repeated request.
        first = next(received)
        with chat_worker(tenant.id, monkeypatch, streamed(REPLY)):
            lines = [line.removeprefix("data: ") for line in [first, *received] if line]

    assert lines[-1] == "[DONE]"
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == REPLY
    with tenant_transaction(tenant.id):
        assert ChatMessage.objects.filter(speaker=Speaker.USER).count() == 1


def test_a_tenant_reaches_its_own_agents_only(
    server: str, outsider: Caller, tenant: Tenant, vega: dict[str, Any], owner: Caller
) -> None:
    lyra = owner.post("/agents", {"name": "Lyra", "template": "Scout"}).json()
    token_of_lyra = caller_of(tenant, Role.OPERATOR, agent_id=lyra["id"])
    for caller, names in ((outsider, []), (token_of_lyra, ["Lyra"])):
        headers = {"Authorization": f"Bearer {caller.token}"}
        listed = httpx.get(f"{server}/v1/models", headers=headers, timeout=60).json()["data"]
        assert [model["id"] for model in listed] == names
        for name in ("Vega", vega["id"], vega["public_id"]):
            payload = {"model": name, "messages": [{"role": "user", "content": "When?"}]}
            refused = httpx.post(f"{server}/v1/chat/completions", json=payload, headers=headers, timeout=60)
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
    with tenant_transaction(tenant.id):
        assert not ChatMessage.objects.exists()
