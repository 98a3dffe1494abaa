"""`arbor keys`: status, rotate and retire, with their exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.agents.models import AgentKey
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from config.keys import KeySource
from config.servers.postgres import EmbeddedPostgres
from tests.integration.cli.conftest import Arbor
from tests.support.sealed import SEALED, key_file, make_secrets


@pytest.fixture
def source(database: None, postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[KeySource]:
    with key_file(tmp_path, postgres) as source:
        yield source


def test_the_master_key_is_rotated_by_command(arbor: Arbor, source: KeySource, tenant: Tenant) -> None:
    secrets = make_secrets(tenant, agents=2)
    before = arbor("keys", "status", "--json").json
    assert before["other"] is None
    sealed = {**SEALED, "agent keys": 4}
    assert {row["kind"]: row["sealed"] for row in before["secrets"]} == {
        kind: {before["current"]: number} for kind, number in sealed.items()
    }
    rotated = arbor("keys", "rotate", "--json")
    assert rotated.code == 0, rotated.err
    assert rotated.json["complete"]
    assert rotated.json["other"] == before["current"]
    assert rotated.json["changed"] == sealed
    repeated = arbor("keys", "rotate", "--batch", "1", "--json")
    assert repeated.json["current"] == rotated.json["current"]
    assert set(repeated.json["changed"].values()) <= {0}
    assert f"{before['current']} seals nothing any more" in arbor("keys", "status").out
    retired = arbor("keys", "retire", "--json")
    assert retired.json == {"current": rotated.json["current"], "retired": before["current"]}
    assert arbor("keys", "retire").code == 1
    secrets.assert_readable()


def test_a_key_in_the_environment_is_rotated_by_its_operator(arbor: Arbor) -> None:
    ran = arbor("keys", "rotate")
    assert (ran.code, ran.out) == (1, "")
    assert "the present one as ARBOR_OTHER_MASTER_KEY, and run `arbor keys rotate` again" in ran.err


def test_an_early_retirement_fails(arbor: Arbor, source: KeySource, tenant: Tenant) -> None:
    make_secrets(tenant, agents=1)
    source.begin_rotation()
    ran = arbor("keys", "retire")
    assert ran.code == 1
    assert "still seals" in ran.err
    assert source.other_file.exists()
    assert "run arbor keys rotate" in arbor("keys", "status").out


def test_a_damaged_secret_fails_the_commands(arbor: Arbor, source: KeySource, tenant: Tenant) -> None:
    make_secrets(tenant, agents=1)
    with tenant_transaction(tenant.id):
        key = AgentKey.objects.get(purpose="signing")
        AgentKey.objects.update(
            sealed_private_key=key.sealed_private_key | {"tag": "AAAAAAAAAAAAAAAAAAAAAA=="}
        )
    for arguments in (("keys", "status"), ("keys", "rotate"), ("keys", "rotate", "--json")):
        ran = arbor(*arguments)
        assert ran.code == 1
        assert "does not open" in ran.out


def test_the_system_authority_is_rotated_by_command(arbor: Arbor, tenant: Tenant) -> None:
    make_secrets(tenant, agents=2)
    refused = arbor("keys", "authority", "retire")
    assert (refused.code, "there is none to retire" in refused.err) == (1, True)
    rotated = arbor("keys", "authority", "rotate", "--json")
    assert (rotated.code, rotated.json["number"], rotated.json["refused"]) == (0, 2, [])
    shown = arbor("keys", "authority", "status", "--json").json["keys"]
    assert [(key["signs"], key["retired"]) for key in shown] == [(False, False), (True, False)]
    retired = arbor("keys", "authority", "retire", "--force", "--json")
    assert retired.json == {"retired": [1]}
    assert "retired" in arbor("keys", "authority", "status").out
