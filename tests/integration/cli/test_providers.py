"""`arbor provider`: keys from a file or standard input, tried, stored and never printed."""

from __future__ import annotations

from pathlib import Path

from tests.integration.cli.conftest import Arbor
from tests.support.provider_server import KEY, ProviderServer


def test_a_key_in_a_file_is_entered_and_removed(
    arbor: Arbor, one_tenant: str, provider: ProviderServer, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text(f"{KEY}\n")
    url = ("--url", provider.base_url)
    added = arbor(
        "provider", "add", "openai", "--key-file", str(key), *url, "--model", "small-chat", "--json"
    )
    assert added.code == 0, added.err
    assert added.json["models"] == ["large-chat", "small-chat"]
    listed = arbor("provider", "list", "--json")
    assert listed.json["default_model"] == "openai/small-chat"
    assert [row["key_end"] for row in listed.json["providers"]] == [KEY[-4:]]
    assert KEY not in added.out + listed.out
    assert "openai answers. It lists 2 models" in arbor("provider", "test", "openai").out
    assert "use openai/large-chat" in arbor("provider", "default", "openai/large-chat").out
    assert "use the installation's model" in arbor("provider", "default", "none").out
    assert arbor("provider", "remove", "openai").code == 0
    assert arbor("provider", "list", "--json").json["providers"] == []


def test_a_key_has_one_source(arbor: Arbor, one_tenant: str) -> None:
    ambiguous = arbor("provider", "add", "openai", "--key-stdin", "--no-key")
    assert ambiguous.code == 2
    assert "one of --key-file, --key-stdin and --no-key" in ambiguous.err


def test_a_server_that_requires_a_key_is_not_added_without_one(
    arbor: Arbor, one_tenant: str, provider: ProviderServer
) -> None:
    refused = arbor("provider", "add", "vllm", "--no-key", "--url", provider.base_url)
    assert refused.code == 1
    assert "vllm rejected the key: 401" in refused.err


def test_a_key_is_asked_for_on_a_terminal_only(arbor: Arbor, one_tenant: str) -> None:
    refused = arbor("provider", "add", "openai", stdin="sk-typed\n")
    assert (refused.code, "no terminal to ask for a key" in refused.err) == (2, True)
    assert "a provider is one of openai" in arbor("provider", "add", "nobody").err
    assert "ollama needs the address of its server" in arbor("provider", "add", "ollama").err


def test_a_key_file_that_is_no_text_is_refused(arbor: Arbor, one_tenant: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    refused = arbor("provider", "add", "openai", "--key-file", str(tmp_path / "key"))
    assert (refused.code, "must be text in UTF-8" in refused.err) == (1, True)


def test_a_key_comes_from_standard_input(arbor: Arbor, one_tenant: str, provider: ProviderServer) -> None:
    added = arbor("provider", "add", "openai", "--key-stdin", "--url", provider.base_url, stdin=f"{KEY}\n")
    assert added.code == 0, added.err
    assert provider.requests[0][1] == f"Bearer {KEY}"
