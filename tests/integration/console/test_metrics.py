"""`/metrics`: closed by default, figures only."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from apps.memories.services.jobs.job_runs import record_job_run
from tests.support.console import World

TOKEN = "a-long-random-token"


def scrape(client: Client, authorization: str = "") -> Any:
    return client.get("/metrics", headers={"Authorization": authorization} if authorization else {})


def read_figures(text: str) -> dict[str, dict[str, float]]:
    return {
        family.name: {",".join(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


@pytest.mark.parametrize("token", ["", TOKEN])
@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", "Bearer \xe9", TOKEN]
)
def test_metrics_are_refused_without_the_right_token(
    token: str, authorization: str, world: World, settings: Any
) -> None:
    settings.ARBOR_METRICS_TOKEN = token
    response = scrape(Client(), authorization)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert b"arbor_" not in response.content


def test_metrics_are_refused_to_the_owner_of_a_tenant(owner: Client) -> None:
    assert scrape(owner).status_code == 401


def test_a_request_with_the_token_reads_figures_without_tenant_data(world: World, settings: Any) -> None:
    settings.ARBOR_METRICS_TOKEN = TOKEN
    record_job_run(name="arbor.decay.fade_memories", period_s=60, seconds=0.5, result=3)
    response = scrape(Client(), f"Bearer {TOKEN}")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    text = response.content.decode()
    figures = read_figures(text)
    assert figures["arbor_maintenance_backlog"]["stale_neighborhoods"] >= 1
    assert figures["arbor_maintenance_state"]["expired"] in (0, 1, 2)
    assert figures["arbor_job_done"] == {"arbor.decay.fade_memories": 3}
    assert figures["arbor_job_last_success_age_seconds"]["arbor.decay.fade_memories"] < 60
    assert figures["arbor_queue_workers"].keys() >= {"decay", "neighborhoods", "heartbeat"}
    assert "completed" in figures["arbor_heartbeats_day"]
    assert figures["arbor_outbox_messages"] == {"waiting": 0, "failed": 1}
    for secret in (str(world.tenant.id), world.tenant.slug, str(world.agent.id), world.agent.name):
        assert secret not in text


def test_a_job_that_is_switched_off_has_no_state(root: Client) -> None:
    for name, period_s in (("arbor.decay.fade_memories", 60), ("arbor.decay.gone", 0)):
        record_job_run(name=name, period_s=period_s, seconds=0.5)
    figures = read_figures(scrape(root).content.decode())
    assert figures["arbor_job_state"].keys() == {"arbor.decay.fade_memories"}
    assert figures["arbor_job_seconds"].keys() == {"arbor.decay.fade_memories", "arbor.decay.gone"}


def test_metrics_are_open_to_a_signed_in_superuser(root: Client, world: World) -> None:
    assert scrape(root).status_code == 200


def test_a_post_to_the_metrics_is_refused(world: World, settings: Any) -> None:
    settings.ARBOR_METRICS_TOKEN = TOKEN
    assert Client().post("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code in (403, 405)
