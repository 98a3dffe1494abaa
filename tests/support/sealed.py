"""An installation with a master key in a file, and secrets of every kind under it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import connections
from django.test import Client, override_settings
from django.urls import reverse

from apps.agents.models import AgentKey
from apps.agents.services.identity import identity_of
from apps.calls.services.provider_keys import ProviderAccess, store_provider_key
from apps.calls.services.provider_lookup import find_provider
from apps.contacts.models import Channel, Hook, SignalWebhook
from apps.contacts.services.channels import add_channel, secret_of
from apps.contacts.services.hooks import NewHook, create_hook
from apps.contacts.services.signal_webhooks import create_webhook
from apps.contacts.services.signing_secrets import SecretPair
from apps.fleet.accounts import create_account
from apps.providers import credentials_of
from apps.tenants.keys import master_keys
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tools.models import ToolServer
from apps.tools.services.servers import add_server, address_of
from arbor.agents.identity import open_private_key, sign, verify
from arbor.agents.keys import KeyPurpose, key_label
from arbor.contacts.signing import SIGNING_SECRETS
from arbor.contacts.values import Audience, ChannelKind
from arbor.sealing import SealedRecord
from config.keys import KeySource
from config.servers.postgres import EmbeddedPostgres
from tests.factories.agents import AgentFactory
from tests.support.cluster import set_serving_passwords
from tests.support.console import sign_in

AGENTS = 6
#: The numbers of sealed and signed values by kind, with AGENTS agents.
SEALED = {
    "role passwords": 3,
    "keys of the System Authority": 1,
    "agent keys": 2 * AGENTS,
    "webhook secrets": 1,
    "signal webhook secrets": 1,
    "hook secrets": 1,
    "tool server secrets": 1,
    "provider keys": 1,
    "sessions": 1,
}
PROVIDER_KEY = "sk-ant-0123456789abcdef"


@contextmanager
def key_file(folder: Path, postgres: EmbeddedPostgres) -> Iterator[KeySource]:
    """Store the key of the tests in a file, as an installation does; restore the roles' passwords afterwards."""
    file = folder / "secrets" / "master_key"
    file.parent.mkdir(mode=0o700)
    file.touch(mode=0o600)
    file.write_text(settings.ARBOR_MASTER_KEYS.current_text)
    source = KeySource(file=file)
    try:
        with override_settings(ARBOR_MASTER_KEYS=source):
            yield source
    finally:
        set_serving_passwords(postgres)


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """Secrets of every kind, and a person who is signed in."""

    tenant: Tenant
    channel_id: UUID
    webhook_secret: str
    signal_webhook_id: UUID
    signal_webhook_secret: str
    tool_server_secret: str
    hook_id: UUID
    hook_secret: str
    client: Client

    def assert_readable(self) -> None:
        """Assert that a running process can use each secret: keys, webhooks, session, new connections."""
        with tenant_transaction(self.tenant.id):
            for key in AgentKey.objects.select_related("agent"):
                private = open_private_key(
                    SealedRecord.from_json(key.sealed_private_key),
                    keys=master_keys(),
                    agent_public_id=key.agent.public_id,
                    tenant_id=str(self.tenant.id),
                    label=key_label(KeyPurpose(key.purpose), key.number),
                )
                if key.purpose == KeyPurpose.SIGNING:
                    assert verify(bytes(key.public_key), b"me", sign(private, b"me"))
                    assert identity_of(key.agent_id).signing_key().number == key.number
            channel = Channel.objects.get(id=self.channel_id)
            assert secret_of(channel) == self.webhook_secret.encode()
            webhook = SignalWebhook.objects.get(id=self.signal_webhook_id)
            opened = SIGNING_SECRETS.unseal(
                webhook.sealed_secret,
                keys=master_keys(),
                tenant_id=webhook.tenant_id,
                row_id=webhook.id,
            )
            assert opened.raw == self.signal_webhook_secret.encode()
            own = find_provider(self.tenant.id, "anthropic/claude")
            assert own is not None
            assert credentials_of(own).anthropic_api_key == PROVIDER_KEY
            assert address_of(ToolServer.objects.get()).secret == self.tool_server_secret
            assert SecretPair.of(Hook.objects.get(id=self.hook_id)).current == self.hook_secret
        for alias in (APP, OPS):
            connections[alias].close()
            connections[alias].ensure_connection()
        assert self.client.get(reverse("admin:own-sessions")).status_code == 200


def make_secrets(tenant: Tenant, *, agents: int = AGENTS) -> Secrets:
    """Store a secret of each kind: agents with keys, webhooks, a hook, a tool server and a key of a provider; sign a person in."""
    user = create_account(username="ann", password="ford-at-the-bend", actor="tests", superuser=True)
    with tenant_transaction(tenant.id):
        for _ in range(agents):
            key = make_agent_key()
        added = add_channel(
            name="hook",
            kind=ChannelKind.WEBHOOK,
            audience=Audience.USER,
            target="https://example.org/hook",
            actor="tests",
        )
        store_provider_key(access=ProviderAccess.of("anthropic", key=PROVIDER_KEY), listed=[], actor="tests")
        webhook = create_webhook(name="hook", url="https://example.org/signals", actor="tests")
        add_server(name="weather", url="https://example.org/mcp", secret="s3cret", actor="tests")
        hook = create_hook(NewHook(name="hook", agent_id=key.agent_id), actor="tests")
        # The inbox has no secret.
        add_channel(name="in", kind=ChannelKind.INBOX, audience=Audience.PUBLIC, target="", actor="tests")
    return Secrets(
        tenant=tenant,
        channel_id=added.channel.id,
        webhook_secret=added.secret,
        signal_webhook_id=webhook.webhook.id,
        signal_webhook_secret=webhook.secret,
        tool_server_secret="s3cret",
        hook_id=hook.hook.id,
        hook_secret=hook.secret,
        client=sign_in(user),
    )


def make_agent_key() -> AgentKey:
    """Create an agent; return its signing key, which is sealed under the current master key."""
    key: AgentKey = AgentFactory().keys.get(purpose=KeyPurpose.SIGNING)
    return key
