"""Parts of an installation: dependencies, command lines and restart delays."""

from __future__ import annotations

import os
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from config.cli.installation.down import STOPPED_WITHIN_S
from config.cli.installation.parts import NAMES, InstallationPlan, parts_of
from config.pools import POOLS
from config.supervisor.launch import Launch
from config.supervisor.managed_process import ManagedProcess, Unit, restart_delay_s
from config.supervisor.supervisor import ORPHAN_EXIT_WITHIN_S
from tests.unit.config.builders import installation_plan


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    return partial(installation_plan, tmp_path)


def by_name(plan: InstallationPlan) -> dict[str, ManagedProcess]:
    return {part.name: part for part in parts_of(plan)}


def test_everything_waits_for_the_database_to_be_prepared(plan: Any) -> None:
    parts = by_name(plan())
    assert set(parts["prepare"].needs) == {"postgres", "valkey", "fork-server"}
    assert {name: parts[name].needs[0] for name in NAMES} == dict.fromkeys(NAMES, "prepare")
    assert {name for name in NAMES if len(parts[name].needs) > 1} == {"api"}


def test_down_waits_as_long_as_the_parts_may_take_to_stop(plan: Any) -> None:
    left, longest_s = by_name(plan()), 0.0
    while left:
        needed = {need for part in left.values() for need in part.needs}
        layer = [left.pop(name) for name in left.keys() - needed]
        longest_s += max(0.0 if part.once else part.stop_within_s for part in layer)
    assert longest_s + ORPHAN_EXIT_WITHIN_S < STOPPED_WITHIN_S


def test_the_api_starts_after_all_that_people_wait_for(plan: Any) -> None:
    needs = by_name(plan())["api"].needs
    assert set(needs) == {"prepare", *NAMES} - {"api", "flower"}


def test_an_external_server_is_not_started(plan: Any) -> None:
    parts = by_name(plan(postgres=None, valkey=None, fork_server=None))
    assert parts.keys() == {"prepare", *NAMES}
    assert parts["prepare"].needs == ()


def test_only_requested_parts_run_beside_the_servers(plan: Any) -> None:
    parts = by_name(plan(only=frozenset({"web"})))
    assert parts.keys() == {"postgres", "valkey", "fork-server", "prepare", "web"}


def test_parts_that_do_not_run_here_have_no_address(plan: Any) -> None:
    urls = plan(only=frozenset({"heartbeat", "api"})).server_urls()
    assert urls.keys() == {"api_url", "database_url", "broker_url"}


def test_every_pool_is_run_with_its_queues(plan: Any) -> None:
    parts = by_name(plan())
    for pool in POOLS:
        launch = parts[pool.name].launch()
        assert f"--queues={','.join(pool.queues)}" in launch.argv
        assert pool.env.items() <= launch.env.items()


def test_no_demo_is_passed_on(plan: Any) -> None:
    assert "--no-demo" in by_name(plan(demo=False))["prepare"].launch().argv
    assert "--no-demo" not in by_name(plan())["prepare"].launch().argv


def test_the_urls_of_own_servers_and_console_are_known(plan: Any) -> None:
    installation = plan()
    urls = installation.server_urls()
    assert urls["database_url"] == f"postgresql://127.0.0.1:{installation.postgres.port}/arbor"
    assert urls["broker_url"] == f"redis://127.0.0.1:{installation.valkey.port}/0"
    assert urls["web_url"] == "http://127.0.0.1:8000/"
    assert "database_url" not in plan(postgres=None).server_urls()


def test_a_console_open_to_the_network_is_linked_on_the_loopback(plan: Any) -> None:
    assert plan(web_host="0.0.0.0").web_url == "http://127.0.0.1:8000/"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('ERROR:  duplicate key value violates unique constraint "contacts_channel_name"', False),
        ("DETAIL:  Key (tenant_id, name)=(01a2, ops) already exists.", False),
        ('ERROR:  relation "contacts_channel" does not exist', True),
        ("DETAIL:  Key (agent_id)=(01a2) is not present in table", True),
    ],
)
def test_client_errors_in_the_database_log_are_filtered(plan: Any, line: str, shown: bool) -> None:
    noise = by_name(plan())["postgres"].noise
    assert noise is not None
    assert (noise.search(line) is None) is shown


@pytest.mark.parametrize(
    ("quick_ends", "delay_s"),
    [(0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (6, 16.0), (7, 30.0), (10_000, 30.0)],
)
def test_the_delay_doubles_up_to_half_a_minute(quick_ends: int, delay_s: float) -> None:
    assert restart_delay_s(quick_ends) == delay_s


def test_a_part_that_writes_endlessly_delays_no_other() -> None:
    unit = Unit(ManagedProcess(name="endless", launch=lambda: Launch(argv=("true",))))
    unit.output = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert len(list(islice(unit.read_lines(), 100))) < 100
    finally:
        unit.close_output()
