"""Embedding over HTTP: the request, the checks of the response, and the error for each failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from arbor.adapters import embedding_http
from arbor.adapters.credentials import Credentials
from arbor.adapters.embedders import connect_embedder
from arbor.adapters.embedding_http import MAX_TEXT_BYTES
from arbor.adapters.wordllama import WordLlamaEmbedder
from arbor.embedding.ports import Embedder
from arbor.errors import ConfigurationInvalid, EmbeddingFailed

KEY = "sk-proj-verySecret0123456789"

type Server = Callable[[httpx.Request], httpx.Response]


def embedder_on(
    server: Server, name: str = "openai/some-model", *, url: str = "http://embed.test/v1"
) -> Embedder:
    client = httpx.Client(transport=httpx.MockTransport(server))
    credentials = Credentials(openai_api_key=KEY, openai_org_id="org-1", openai_project_id="proj-1")
    return connect_embedder(name, credentials, dimension=3, url=url, client=client)


def openai_reply(texts: list[str]) -> dict[str, Any]:
    data = [{"index": n, "embedding": [float(len(text)), 1.0, 0.0]} for n, text in enumerate(texts)]
    return {"object": "list", "data": data[::-1]}


class OpenAiServer:
    """A server that answers with a vector for each text, and records requests."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(200, json=openai_reply(json.loads(request.content)["input"]))


def test_openai_vectors_are_returned_in_the_order_of_the_texts() -> None:
    server = OpenAiServer()
    rows = embedder_on(server).embed(["", "abcde"])
    assert rows[0].tolist() == [0, 1, 0]
    assert rows[1, 0] == pytest.approx(5 / 26**0.5)
    (request,) = server.requests
    assert str(request.url) == "http://embed.test/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["openai-organization"] == "org-1"
    assert request.headers["openai-project"] == "proj-1"
    assert json.loads(request.content) == {
        "model": "some-model",
        "input": ["", "abcde"],
        "encoding_format": "float",
    }


def test_a_dimension_is_sent_only_to_models_that_support_it() -> None:
    server = OpenAiServer()
    embedder_on(server, "openai/text-embedding-3-small").embed(["a"])
    assert json.loads(server.requests[0].content)["dimensions"] == 3


def test_tei_requests_follow_the_protocol_of_tei() -> None:
    requests: list[httpx.Request] = []

    def server(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json=[[0.0, 3.0, 4.0]] * len(json.loads(request.content)["inputs"]))

    embedder = embedder_on(server, "tei/bge-small", url="http://tei.test/")
    assert embedder.embed(["a"])[0].tolist() == pytest.approx([0, 0.6, 0.8])
    assert str(requests[0].url) == "http://tei.test/embed"
    assert json.loads(requests[0].content) == {"inputs": ["a"], "truncate": True, "normalize": True}
    assert embedder.model == "tei/bge-small"


@pytest.mark.parametrize(("name", "most"), [("openai/some-model", 64), ("tei/bge-small", 32)])
def test_many_texts_are_sent_in_batches(name: str, most: int) -> None:
    sizes: list[int] = []

    def server(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        texts = body.get("input") or body["inputs"]
        sizes.append(len(texts))
        reply = openai_reply(texts) if "input" in body else [[1.0, 0.0, 0.0]] * len(texts)
        return httpx.Response(200, json=reply)

    assert embedder_on(server, name).embed([f"text {n}" for n in range(100)]).shape == (100, 3)
    assert sum(sizes) == 100
    assert max(sizes) == most


def test_only_the_beginning_of_a_long_text_is_sent() -> None:
    server = OpenAiServer()
    embedder_on(server).embed(["€" * 20_000])
    (request,) = server.requests
    assert json.loads(request.content)["input"] == ["€" * (MAX_TEXT_BYTES // 3)]


def answering(status: int, body: Any) -> Server:
    return lambda _: httpx.Response(status, json=body)


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (answering(401, {"error": {"message": f"Bad key {KEY}"}}), "rejected openai/some-model: 401 Bad key"),
        (answering(429, {"error": {"message": "slow down"}}), "limits the rate of calls"),
        (answering(503, {"detail": "warming up"}), "failed: 503"),
        (answering(200, {"data": []}), "must give 2 vectors"),
        (answering(200, {"data": [{"index": 0, "embedding": [1, 2, 3]}] * 2}), "cannot be read"),
        (answering(200, {"data": [{"index": "0", "embedding": [1, 2, 3]}]}), "cannot be read"),
        (answering(200, {"data": [{"embedding": [1, 2, 3]}, {}]}), "cannot be read"),
        (answering(200, {"data": [{"embedding": [1, 2]}, {"embedding": [1, 2]}]}), "stores 3"),
        (answering(200, {"data": [{"embedding": [1, 2, 3]}, {"embedding": [0, 0, 0]}]}), "zero"),
        (answering(200, "hello"), "cannot be read"),
        (lambda _: httpx.Response(200, content=b"<html>"), "not a model's server"),
        (
            lambda _: httpx.Response(
                200, content=b'{"data": [{"embedding": [NaN, 1, 1]}, {"embedding": [1, 1, 1]}]}'
            ),
            "not finite",
        ),
    ],
)
def test_every_failure_is_an_embedding_that_failed_and_shows_no_key(server: Server, message: str) -> None:
    with pytest.raises(EmbeddingFailed, match=message) as failure:
        embedder_on(server).embed(["a", "b"])
    assert KEY not in str(failure.value)


def test_a_server_that_cannot_be_reached_is_named() -> None:
    def server(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(EmbeddingFailed, match="openai cannot be reached: refused"):
        embedder_on(server).embed(["a"])


def test_the_deadline_is_for_all_batches_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 31.0])
    monkeypatch.setattr(embedding_http, "time", FakeTime(clock.__next__))
    server = OpenAiServer()

    with pytest.raises(EmbeddingFailed, match=r"did not answer within 30\.0 s"):
        embedder_on(server).embed(["a"] * 200)
    assert len(server.requests) == 1


class FakeTime:
    """A replacement of the module `time` with a scripted clock."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic


def test_the_built_in_embedder_needs_no_configuration() -> None:
    embedder = connect_embedder("wordllama", Credentials(), dimension=256)
    assert isinstance(embedder, WordLlamaEmbedder)
    assert embedder.in_process


def test_openai_is_the_default_address() -> None:
    server = OpenAiServer()
    embedder_on(server, url="").embed(["a"])
    assert [str(request.url) for request in server.requests] == ["https://api.openai.com/v1/embeddings"]


@pytest.mark.parametrize(
    ("name", "dimension", "message"),
    [
        ("wordllama", 384, "must be 64, 128, 256 for wordllama, got 384"),
        ("openai/some-model", 256, "needs OPENAI_API_KEY, or ARBOR_EMBEDDING_URL"),
        ("tei/bge-small", 256, "needs its server's address: ARBOR_EMBEDDING_URL"),
        ("openai", 256, "is wordllama, openai/<model> or tei/<model>, got 'openai'"),
        ("cohere/x", 256, "got 'cohere/x'"),
        ("wordllama/big", 256, "got 'wordllama/big'"),
    ],
)
def test_an_invalid_embedder_setting_is_refused_with_the_valid_form(
    name: str, dimension: int, message: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        connect_embedder(name, Credentials(), dimension=dimension)
