"""A heartbeat's vectors: by its agent's own model; a remote embedder is asked about what is searched for, never waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from apps.heartbeats.handlers.decide import Embed
from apps.heartbeats.handlers.observe import Focus
from apps.memories.services import embedding
from apps.tenants.models import Tenant
from arbor.adapters.embedders import connect_embedder
from arbor.embedding.ports import HashEmbedder
from arbor.errors import EmbeddingFailed
from arbor.heartbeat.decision import Decision, Verdict
from arbor.heartbeat.reply import MemoryNote, Reply
from tests.unit.heartbeat.builders import situation

MIND = {"name": "tei/remote", "dimension": 64}
REPLY = Reply(memory_notes=[MemoryNote(text="Ferries are late on Sundays.")])
DECISIONS = [
    Decision(index=0, action="recall", params={"query": "ferries"}, verdict=Verdict.RUN),
    Decision(index=1, action="remember", params={"content": "The cook sleeps."}, verdict=Verdict.RUN),
]


class _Remote:
    """An embedder a network away."""

    in_process = False
    model = "tei/remote"
    dimension = 64

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += texts
        if self.away:
            raise EmbeddingFailed("it does not answer")
        return HashEmbedder(64).embed(texts)


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Remote]:
    """Put a remote embedder beside the one in this process, and return it."""
    made = _Remote()
    connect = connect_embedder

    def connected(name: str, *parts: Any, **named: Any) -> Any:
        return made if name == MIND["name"] else connect(name, *parts, **named)

    monkeypatch.setattr(embedding, "connect_embedder", connected)
    monkeypatch.setattr(embedding, "_kept", embedding._Kept())
    embedding.embedder_for.cache_clear()
    yield made
    embedding.embedder_for.cache_clear()


def context_of(tenant: Tenant, mind: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "tenant_id": str(tenant.id),
        "agent_id": str(tenant.id),
        "mind": mind,
        "decisions": DECISIONS,
        "reply": REPLY,
        "meanings": {"ferries": "ferries"},
        "focus": {"text": "Where is the ferry?", "meaning": "Where is the ferry?"},
        "situation": situation(),
    }


def test_what_is_searched_for_is_asked_and_what_is_stored_waits_for_the_backlog(
    tenant: Tenant, remote: _Remote
) -> None:
    vectors = Embed().run(context_of(tenant, MIND)).updates["vectors"]
    assert {text: len(vector) for text, vector in vectors.items()} == {"ferries": 64}
    # And whatever boundaries are held against.
    assert remote.asked[0] == "ferries"
    assert not {"The cook sleeps.", "Ferries are late on Sundays."} & set(remote.asked)


def test_in_this_process_all_are_embedded_by_the_agents_own_model(tenant: Tenant) -> None:
    for mind, length in (({"name": "wordllama", "dimension": 128}, 128), (None, 256)):
        vectors = Embed().run(context_of(tenant, mind)).updates["vectors"]
        assert {text: len(vector) for text, vector in vectors.items()} == dict.fromkeys(
            ["ferries", "The cook sleeps.", "Ferries are late on Sundays."], length
        )


def test_the_focus_is_embedded_by_the_agents_own_model(tenant: Tenant, remote: _Remote) -> None:
    focus = Focus().run(context_of(tenant, MIND)).updates["focus"]
    assert len(focus["vector"]) == 64
    remote.away = True
    context = context_of(tenant, MIND)
    context["focus"] = {"text": "Who sleeps?", "meaning": "Who sleeps?"}
    assert Focus().run(context).updates["focus"]["vector"] is None
    context["decisions"] = [DECISIONS[0].model_copy(update={"params": {"query": "cooks"}})]
    assert Embed().run(context).updates["vectors"] == {}
