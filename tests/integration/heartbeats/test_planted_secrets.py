"""Secrets of every kind: stored and used, then searched for wherever something is written, sent or shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest
from django.conf import settings
from django.contrib import admin
from django.test import Client, override_settings
from django.urls import reverse

from apps.access.services import create_token
from apps.agents.models import Agent, AgentKey
from apps.api.api import api
from apps.fleet.seeds.capture import CaptureOptions
from apps.fleet.seeds.exporting import export_seed
from apps.heartbeats.models import Heartbeat
from apps.queues import TaskMessage
from apps.tenants.keys import master_keys
from apps.tenants.models import Role, Tenant, User
from apps.tenants.packing import unpack_text
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import add_member
from arbor.agents.identity import open_private_key
from arbor.agents.keys import KeyPurpose, key_label
from arbor.sealing import SealedRecord
from arbor.seeds.reading import SeedReader
from config.servers.postgres import EmbeddedPostgres
from tests.factories.agents import AgentStateFactory
from tests.factories.heartbeats import ScheduleFactory
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, Script, action_of, reply_of
from tests.support.api import API_SETTINGS
from tests.support.console import page_of
from tests.support.sealed import PROVIDER_KEY, Secrets, make_secrets

#: What is certainly written, sent and shown, so that each search is known to look at something.
_MARKER = "marzipan"


@pytest.fixture
def planted(tenant: Tenant, agent: Agent) -> tuple[Secrets, dict[str, bytes], str]:
    """Return an installation's objects with secrets, each secret by its description, and a token of the API."""
    secrets = make_secrets(tenant, agents=1)
    add_member(tenant=tenant, user=User.objects.get(username="ann"), role=Role.OWNER)
    with tenant_transaction(tenant.id):
        other = Agent.objects.exclude(id=agent.id).get()
        AgentStateFactory(agent=other)
        ScheduleFactory(agent=other)
        token = create_token(name="reader", role=Role.OWNER, actor="tests").text
        keys = {
            f"the {key.purpose} key of {key.agent_id}": _private_key(key)
            for key in AgentKey.objects.select_related("agent")
        }
    texts = {
        "the master key": settings.ARBOR_MASTER_KEYS.current_text,
        "the provider's key": PROVIDER_KEY,
        "the secret of the channel": secrets.webhook_secret,
        "the secret of the webhook": secrets.signal_webhook_secret,
        "the secret of the tool server": secrets.tool_server_secret,
        "the secret of the hook": secrets.hook_secret,
        "the token": token,
    }
    return secrets, {**keys, **{name: text.encode() for name, text in texts.items()}}, token


def _private_key(key: AgentKey) -> bytes:
    return open_private_key(
        SealedRecord.from_json(key.sealed_private_key),
        keys=master_keys(),
        agent_public_id=key.agent.public_id,
        tenant_id=str(key.tenant_id),
        label=key_label(KeyPurpose(key.purpose), key.number),
    ).raw


def test_no_secret_is_stored_sent_shown_or_exported(
    tenant: Tenant,
    agent: Agent,
    planted: tuple[Secrets, dict[str, bytes], str],
    fleet: Fleet,
    scripted: Script,
    postgres: EmbeddedPostgres,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets, wanted, token = planted
    sent: list[str] = []
    deliver = fleet.deliver

    def record_and_deliver(message: TaskMessage) -> bool:
        sent.append(repr(message))
        return deliver(message)

    monkeypatch.setattr(fleet, "deliver", record_and_deliver)
    HeartbeatRunner(fleet, agent, scripted).run(
        reply_of(actions=[action_of("remember", content=f"They like {_MARKER}."), action_of("rest")])
    )
    places = {
        "a table": _tables(postgres),
        "a page": b"\n".join(_pages(secrets.client, tenant, agent)),
        "an answer of the API": b"\n".join(_answers(token, agent.id)),
        "a seed": _seed(tenant, agent),
        "an argument of a task": "\n".join(sent).encode(),
        "a log": (caplog.text + "".join(capsys.readouterr())).encode(),
    }
    for place in ("a table", "a page", "an answer of the API", "a seed"):
        assert _MARKER.encode() in places[place], place
    assert str(agent.id).encode() in places["an argument of a task"]
    with tenant_transaction(tenant.id):
        sealed = {str(key): key.sealed_private_key["ct"].encode() for key in AgentKey.objects.all()}
    for place, content in places.items():
        # The statement of each leg reads the sealed private keys: they are stored, and written nowhere else.
        for name, ciphertext in sealed.items():
            assert (ciphertext in content) == (place == "a table"), f"the sealed {name} is in {place}"
        for name, secret in wanted.items():
            for form in _forms(secret):
                assert form not in content, f"{name} is in {place}"


def _forms(secret: bytes) -> Iterator[bytes]:
    """Yield the forms in which a secret could be written."""
    yield secret
    yield secret.hex().encode()
    yield base64.b64encode(secret).rstrip(b"=")
    yield base64.urlsafe_b64encode(secret).rstrip(b"=")


def _tables(postgres: EmbeddedPostgres) -> bytes:
    """Return each value of each row, unpacked."""
    parts: list[bytes] = []
    with psycopg.connect(postgres.superuser_url) as database:
        tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            for row in database.execute(
                psycopg.sql.SQL("SELECT * FROM {}").format(psycopg.sql.Identifier(table))
            ):
                parts += map(_bytes_of, row)
    return b"\n".join(parts)


def _bytes_of(value: Any) -> bytes:
    if not isinstance(value, bytes):
        return (value if isinstance(value, str) else json.dumps(value, default=str)).encode()
    try:
        return unpack_text(value)
    except ValueError:  # not packed
        return value


def _pages(client: Client, tenant: Tenant, agent: Agent) -> Iterator[bytes]:
    """Yield the lists and operators' pages of the console, and pages of rows."""
    client.post(reverse("admin:tenant-choose"), {"tenant": str(tenant.id)})
    with tenant_transaction(tenant.id):
        rows = [
            *Heartbeat.objects.all(),
            agent,
            *(
                row
                for model in admin.site._registry
                if model._meta.app_label in ("agents", "authority", "contacts", "tools", "calls")
                for row in model._default_manager.all()[:2]
            ),
        ]
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    for address in [*lists, *map(page_of, rows), reverse("admin:models"), reverse("admin:operations")]:
        response = client.get(address)
        assert response.status_code in (200, 302, 404), address
        yield response.getvalue()


def _answers(token: str, agent_id: UUID) -> Iterator[bytes]:
    """Yield the answers of all operations of the API that read and need no other id than the agent's."""
    client = Client(headers={"authorization": f"Bearer {token}"})
    with override_settings(**API_SETTINGS):
        for path, operations in api.get_openapi_schema()["paths"].items():
            address = urlsplit(path.replace("{agent_id}", str(agent_id))).path
            if "get" in operations and "{" not in address and not address.endswith("/stream"):
                response = client.get(address)
                assert response.status_code < 500, address
                yield response.getvalue()


def _seed(tenant: Tenant, agent: Agent) -> bytes:
    """Return the rows of the agent's seed."""
    file = BytesIO()
    options = CaptureOptions(reason="test")
    export_seed(tenant_id=tenant.id, agent_id=agent.id, output=file, options=options, actor="tests")
    file.seek(0)
    return b"\n".join(json.dumps(row.values, default=str).encode() for row in SeedReader(file).rows())
