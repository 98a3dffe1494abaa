"""Keys of providers, entered by an owner in the console: tried, sealed, and used by the calls of that tenant only."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.calls.models import ProviderKey
from apps.console.pages.models import ModelsPage
from apps.contacts.services.chat import exchange_turns, open_session
from apps.fleet import tenant_models
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.inline import run_heartbeat_now
from apps.knowledge.services.active_skills import choose_skills
from apps.knowledge.services.skills import add_skill
from apps.queues import captured
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from tests.integration.skills.conftest import skill_text
from tests.support import provider_server as provider_server_module
from tests.support.provider_server import KEY, ProviderServer

CHAT = "/v1/chat/completions"


@pytest.fixture
def agent(tenant: Tenant, templates: None) -> Agent:
    return start_new_agent(tenant, "Vega")


def start_new_agent(tenant: Tenant, name: str, model: str = "") -> Agent:
    with captured(), tenant_transaction(tenant.id):
        agent = create_agent(name=name, template_name="Monitor", actor="user:ann", model=model)
        return start_agent(agent_id=agent.id, actor="user:ann")


def act(client: Client, verb: str, **fields: str) -> str:
    """Post an act on the models; return the text of the page that follows."""
    answer = client.post(reverse("admin:models-act"), {"act": verb, **fields}, follow=True)
    return answer.content.decode()


def connect(client: Client, server: ProviderServer, **fields: str) -> str:
    payload = {"provider": "openai", "key": KEY, "base_url": server.base_url, "model": "small-chat"}
    return act(client, "connect", **(payload | fields))


def talk(agent: Agent, text: str) -> str:
    with captured():
        with tenant_transaction(agent.tenant_id):
            session = open_session(agent_id=agent.id, person="user:ann")
        answer = exchange_turns(
            tenant_id=agent.tenant_id, session_id=session.id, text=text, execute=execute_call
        )
    return str(answer.error or answer.content)


def test_an_entered_key_answers_a_conversation(owner: Client, agent: Agent, provider: ProviderServer) -> None:
    page = connect(owner, provider)
    assert "The key of openai works and is stored. It lists 2 models." in page
    assert talk(agent, "Hello, who are you?") == provider.reply
    [(header, body)] = provider.asked(CHAT)
    assert header == f"Bearer {KEY}"
    assert body["model"] == "small-chat"


def test_a_heartbeat_uses_the_tenants_key(owner: Client, agent: Agent, provider: ProviderServer) -> None:
    connect(owner, provider)
    with captured():
        heartbeat = run_heartbeat_now(agent_id=agent.id, tenant_id=agent.tenant_id)
    assert heartbeat.model == "openai/small-chat"
    assert provider.asked(CHAT)[-1][0] == f"Bearer {KEY}"


def test_a_key_is_on_no_page_and_sealed_in_its_row(
    owner: Client, tenant: Tenant, provider: ProviderServer
) -> None:
    page = connect(owner, provider)
    assert KEY not in page
    assert f"…{KEY[-4:]}" in page
    with tenant_transaction(tenant.id):
        row = ProviderKey.objects.get()
        audited = json.dumps(list(AuditEvent.objects.values_list("message", "detail")))
    assert KEY not in json.dumps(row.sealed_key)
    assert set(row.sealed_key) == {"v", "k", "ct", "iv", "tag"}
    assert "entered the key of openai" in audited
    assert KEY not in audited
    for name in ("admin:calls_providerkey_changelist", "admin:models"):
        assert KEY not in owner.get(reverse(name)).content.decode()


def test_a_refused_key_is_not_stored(owner: Client, tenant: Tenant, provider: ProviderServer) -> None:
    rejected = "sk-wrong-0123456789abcdef"
    page = connect(owner, provider, key=rejected)
    assert "Nothing was changed: openai rejected the key: 401" in page
    assert rejected not in page
    assert f'value="{provider.base_url}"' in page, "the form repeats all entries but the key"
    with tenant_transaction(tenant.id):
        assert not ProviderKey.objects.exists()


def test_a_server_without_a_list_is_tried_by_one_request(owner: Client, provider: ProviderServer) -> None:
    provider.lists = False
    assert "the server lists no models: its address usually ends in /v1" in connect(owner, provider, model="")
    assert "It lists no models." in connect(owner, provider)
    assert [body["model"] for _, body in provider.asked(CHAT)] == ["small-chat"]


def test_a_removed_key_is_no_longer_used(owner: Client, agent: Agent, provider: ProviderServer) -> None:
    connect(owner, provider)
    assert talk(agent, "Hello.") == provider.reply
    assert "The key of openai is removed." in act(owner, "disconnect", provider="openai")
    talk(agent, "Are you there?")
    assert len(provider.asked(CHAT)) == 1, "the reflex policy answers, as before"


def test_a_new_key_replaces_the_old_one_at_once(
    owner: Client, agent: Agent, provider: ProviderServer
) -> None:
    connect(owner, provider)
    talk(agent, "Hello.")
    provider.key = "sk-second-0123456789abcdef"
    connect(owner, provider, key=provider.key)
    assert talk(agent, "Hello again.") == provider.reply
    assert provider.asked(CHAT)[-1][0] == f"Bearer {provider.key}"


def test_a_key_serves_its_own_tenant_only(
    owner: Client, other_tenant: Tenant, templates: None, provider: ProviderServer
) -> None:
    connect(owner, provider)
    with tenant_transaction(other_tenant.id):
        assert not ProviderKey.objects.exists()
    stranger = start_new_agent(other_tenant, "Rigel", model="openai/small-chat")
    assert "needs OPENAI_API_KEY" in talk(stranger, "Hello.")
    assert provider.asked(CHAT) == []


def test_private_addresses_need_a_setting(
    owner: Client, provider: ProviderServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ARBOR_MODEL_ALLOW_PRIVATE = False
    for address in ("https://127.0.0.1/v1", "https://169.254.169.254/", "https://postgres:5432"):
        assert "own network; who runs the installation allows it by ARBOR_MODEL_ALLOW_PRIVATE" in connect(
            owner, provider, base_url=address
        )
    assert "begins with https://" in connect(owner, provider)
    # A name of a private address is refused when the connection is made.
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))],
    )
    text = connect(owner, provider, base_url="https://models.example/v1")
    assert "ARBOR_MODEL_ALLOW_PRIVATE=true permits addresses" in text
    assert provider.requests == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"provider": "reflex"}, "a provider is one of openai, anthropic"),
        ({"key": "two words"}, "printable ASCII characters without spaces"),
        ({"key": "", "base_url": ""}, "openai needs a key"),
        ({"provider": "ollama", "base_url": ""}, "ollama needs the address of its server"),
        ({"provider": "anthropic"}, "anthropic has an address of its own"),
        ({"base_url": "https://ann:secret@example.org/v1"}, "no user, password, query or fragment"),
        ({"model": "two words"}, "a model handle is provider/model"),
    ],
)
def test_an_invalid_entry_is_refused_with_a_reason(
    owner: Client, provider: ProviderServer, fields: dict[str, str], reason: str
) -> None:
    assert reason in connect(owner, provider, **fields)
    assert provider.requests == []


def test_the_default_needs_a_provider_with_a_key(owner: Client, provider: ProviderServer) -> None:
    assert "there is no key or address of anthropic: enter it first" in act(
        owner, "choose", model="anthropic/claude-haiku-5-5"
    )
    connect(owner, provider)
    assert "use openai/large-chat from now on" in act(owner, "choose", model="openai/large-chat")
    assert "use the installation&#x27;s model from now on" in act(owner, "choose", model="")


def test_only_owners_change_models(
    as_role: Callable[[Role], Client], tenant: Tenant, provider: ProviderServer
) -> None:
    operator = as_role(Role.OPERATOR)
    for verb in ("connect", "try", "disconnect", "choose"):
        answer = operator.post(reverse("admin:models-act"), {"act": verb, "key": KEY, "provider": "openai"})
        assert answer.status_code == 403, verb
    assert "Only owners of" in operator.get(reverse("admin:models")).content.decode()
    with tenant_transaction(tenant.id):
        assert AuditEvent.objects.filter(message="was not allowed to enter a key of a provider").exists()
    assert provider.requests == []


def test_a_new_agent_chooses_among_the_listed_models(
    owner: Client, provider: ProviderServer, templates: None
) -> None:
    connect(owner, provider)
    form = owner.get(reverse("admin:agents_agent_add")).content.decode()
    for handle in ("openai/large-chat", "openai/small-chat", "reflex/policy"):
        assert f'<option value="{handle}">' in form
    assert "text-embedding-3" not in form, "an embedder cannot converse"


def test_a_tenant_without_a_default_gets_a_small_model(
    owner: Client, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Choose a default model to give them one." in connect(owner, provider, model="")
    monkeypatch.setattr(provider_server_module, "MODELS", ("gpt-6-luna", "large-chat"))
    assert "use <strong" in connect(owner, provider, model="")
    page = owner.get(reverse("admin:models")).content.decode()
    assert 'id="model-in-use">openai/gpt-6-luna<' in page


@pytest.fixture
def full_agent(agent: Agent, settings: Any) -> Agent:
    """Return an agent that calls no model, whose skill does not fit a model of the provider."""
    settings.ARBOR_MODEL_CONTEXT = 16_384
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps", "word " * 9_000), actor="user:ann")
        choose_skills(agent_id=agent.id, names=["lamps"], actor="user:ann")
    return agent


def test_a_key_with_a_model_that_skills_do_not_fit_is_not_stored(
    owner: Client, full_agent: Agent, provider: ProviderServer
) -> None:
    assert "Nothing was changed: agent Vega: the skills take" in connect(owner, provider)
    with tenant_transaction(full_agent.tenant_id):
        assert not ProviderKey.objects.exists()


def test_a_key_with_too_long_a_name_of_a_model_is_not_stored(
    owner: Client, tenant: Tenant, provider: ProviderServer
) -> None:
    page = connect(owner, provider, model="m" * 200)
    assert "Nothing was changed: a model handle has at most 200 characters, got 207." in page
    with tenant_transaction(tenant.id):
        assert not ProviderKey.objects.exists()


def test_a_small_model_that_skills_do_not_fit_is_no_default(
    owner: Client, full_agent: Agent, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_server_module, "MODELS", ("small-chat",))
    assert "The key of openai works and is stored." in connect(owner, provider, model="")
    with tenant_transaction(full_agent.tenant_id):
        assert Tenant.objects.get(id=full_agent.tenant_id).default_model == ""


def test_one_key_of_a_tenant_is_tried_at_a_time(
    owner: Client, tenant: Tenant, provider: ProviderServer
) -> None:
    with tenant_models._one_trial(tenant.id):
        assert "another key of this tenant is being tried" in connect(owner, provider)
    assert "works and is stored" in connect(owner, provider)


def test_a_key_that_does_not_open_is_refused(owner: Client, tenant: Tenant, provider: ProviderServer) -> None:
    connect(owner, provider)
    with tenant_transaction(tenant.id):
        row = ProviderKey.objects.get()
        row.sealed_key["k"] = "another"
        row.save()
    assert "enter the key of openai again" in act(owner, "try", provider="openai")


def test_a_stored_key_is_tried_again(owner: Client, provider: ProviderServer) -> None:
    connect(owner, provider)
    assert "openai answers. It lists 2 models." in act(owner, "try", provider="openai")
    provider.key = "another"
    assert "openai rejected the key: 401" in act(owner, "try", provider="openai")
    assert "this tenant has no key of &#x27;gemini&#x27;" in act(owner, "try", provider="gemini")


def test_a_list_of_models_that_ended_early_says_so(
    owner: Client, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_models, "MAX_LISTED", 2)
    monkeypatch.setattr(ModelsPage, "max_listed", 2)
    page = connect(owner, provider)
    assert "It lists 2 or more models." in page
    assert ">2+</span>" in page
