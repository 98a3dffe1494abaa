"""The Grafana dashboard and the alert rules, whose metrics and labels must exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from apps.memories.services.jobs.job_runs import record_job_run
from tests.support.console import World

OPS = Path(__file__).parents[3] / "ops"
DASHBOARD = OPS / "grafana" / "arbor.json"
ALERTS = OPS / "prometheus" / "alerts.yaml"
_METRIC = re.compile(r"(arbor_\w+)(?:\{(\w+)=\"(\w+)\"\})?")


def expressions() -> Iterator[tuple[str, str, str]]:
    """Yield the title, the expression and the text of each panel and alert: its legend, or its annotations."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"], " ".join(rule["annotations"].values())


@pytest.fixture
def samples(world: World, settings: Any) -> dict[str, list[dict[str, str]]]:
    """Return the labels of all samples, by metric."""
    settings.ARBOR_METRICS_TOKEN = "token"
    record_job_run(name="arbor.decay.fade_memories", period_s=60, seconds=0.5, result=3)
    response = Client().get("/metrics", headers={"Authorization": "Bearer token"})
    return {
        family.name: [dict(sample.labels) for sample in family.samples]
        for family in text_string_to_metric_families(response.content.decode())
    }


def test_expressions_use_metrics_and_labels_that_exist(samples: dict[str, list[dict[str, str]]]) -> None:
    used = set()
    for title, expression, text in expressions():
        for metric, label, value in _METRIC.findall(expression):
            used.add(metric)
            assert metric in samples, f"{title}: {metric}"
            if label:
                assert value in {labels.get(label) for labels in samples[metric]}, title
        for label in re.findall(r"\{\{ *(?:\$labels\.)?(\w+) *\}\}", text):
            assert all(label in labels for labels in samples[metric]), f"{title}: {label}"
    # Every metric is used, except for three that are details of others.
    assert set(samples) - used <= {"arbor_maintenance_judged", "arbor_job_done", "arbor_job_failed_steps"}


def test_the_dashboard_has_no_address_of_a_server() -> None:
    assert "://" not in DASHBOARD.read_text()


def test_the_panels_of_the_dashboard_have_unique_ids() -> None:
    ids = [panel["id"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    assert len(ids) == len(set(ids))
