"""Ingestion, heartbeats and recall on real data: a dialog of LoCoMo, which is not part of the project."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.agents.services.templates import seed_builtin_templates
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.inline import run_heartbeat_now
from apps.memories.models import Memory
from apps.memories.services.recall.recaller import recall
from apps.memories.services.store.ingest import ingest
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.memory.conversations.conversation import ConversationFormat
from arbor.memory.recall.recall_request import RecallRequest

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("ARBOR_LOCOMO_DATA") or ROOT.parent / "shared/data/locomo_dev.json")
#: Questions whose evidence is in the dialog: multi-hop, temporal, open, single-hop.
ANSWERABLE = {1, 2, 3, 4}
#: The expected share of evidence among the first ten results, with the embedded embedder alone.
EXPECTED = 0.70

pytestmark = pytest.mark.skipif(
    not DATA.is_file(), reason=f"no LoCoMo file at {DATA}; name one in ARBOR_LOCOMO_DATA"
)


@pytest.fixture(scope="module")
def dialog() -> dict[str, Any]:
    """Return the first dialog of the file, with its questions."""
    sample: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))[0]
    return sample


@pytest.fixture
def reader(tenant: Tenant) -> Agent:
    """Return a started agent that has no heartbeat by itself during the test."""
    seed_builtin_templates()
    with tenant_transaction(tenant.id):
        agent = create_agent(
            name="Reader", template_name="Odalys", actor="cli:tests", interval=timedelta(days=30)
        )
        return start_agent(agent_id=agent.id, actor="cli:tests")


def evidence_of(question: dict[str, Any]) -> set[str]:
    """Return the names of the turns that answer a question; some strings have several names."""
    return {name for names in question.get("evidence", []) for name in names.replace(";", " ").split()}


def test_an_agent_recalls_the_evidence_of_a_real_dialog(reader: Agent, dialog: dict[str, Any]) -> None:
    read = ingest(
        tenant_id=reader.tenant_id,
        agent_id=reader.id,
        path=DATA,
        actor="cli:tests",
        sample=dialog["sample_id"],
    )
    assert read.format is ConversationFormat.LOCOMO
    assert read.bad == 0
    assert read.stored > 400
    heartbeats = [run_heartbeat_now(agent_id=reader.id, tenant_id=reader.tenant_id) for _ in range(3)]
    assert [(heartbeat.number, heartbeat.status) for heartbeat in heartbeats] == [
        (number, HeartbeatStatus.DONE) for number in (1, 2, 3)
    ]
    with tenant_transaction(reader.tenant_id):
        rows = Memory.objects.filter(agent_id=reader.id, source__startswith="ingest:")
        names = {row.id: row.detail["source_id"] for row in rows}
    hit_rates = []
    for question in dialog["qa"]:
        evidence = evidence_of(question) & set(names.values())
        if question["category"] not in ANSWERABLE or not evidence:
            continue
        results = recall(
            tenant_id=reader.tenant_id,
            request=RecallRequest(agent_id=reader.id, text=question["question"], limit=10),
        )
        hit_rates.append(len(evidence & {names.get(memory.id, "") for memory in results}) / len(evidence))
    assert len(hit_rates) > 100
    assert sum(hit_rates) / len(hit_rates) >= EXPECTED


def test_ingesting_a_dialog_again_adds_nothing(reader: Agent, dialog: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {
        "tenant_id": reader.tenant_id,
        "agent_id": reader.id,
        "path": DATA,
        "actor": "cli:tests",
        "sample": dialog["sample_id"],
    }
    first = ingest(**arguments)
    again = ingest(**arguments)
    assert (again.stored, again.duplicates) == (0, first.stored)
