"""Tokenizers: chosen for models, read from the setting, and loaded from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arbor.adapters.token_counts import load_counter
from arbor.errors import ConfigurationInvalid
from arbor.models.token_counts import parse_tokenizers, shared_tokenizer
from arbor.models.windows import TEMPLATE_TOKENS, PromptLimits, prompt_limits

TOKENIZERS = {"ollama": len, "openai/gpt-oss": len, "openai/gpt-oss-tiny": str.__len__}
#: A tokenizer file that counts words.
WORDS: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "truncation": None,
    "padding": None,
    "model": {"type": "WordLevel", "vocab": {"?": 0, "tide": 1}, "unk_token": "?"},
}


@pytest.mark.parametrize(
    ("handles", "name"),
    [
        (["ollama/llama3.2"], "ollama"),
        (["openai/gpt-oss-20b"], "openai/gpt-oss"),
        (["openai/gpt-oss-tiny-1b"], "openai/gpt-oss-tiny"),
        (["openai/gpt-oss-20b", "ollama/gpt-oss"], "openai/gpt-oss"),
        (["openai/gpt-oss-20b", "openai/gpt-oss-tiny"], ""),
        (["ollama/llama3.2", "anthropic/claude-opus-5-5"], ""),
        (["ollamas/llama3.2"], ""),
        ([], ""),
    ],
)
def test_models_share_a_tokenizer_if_each_has_the_same(handles: list[str], name: str) -> None:
    assert shared_tokenizer(handles, TOKENIZERS) == name


def test_a_tokenizer_replaces_the_learnt_ratio() -> None:
    limits = prompt_limits(
        ["ollama/a", "ollama/b"],
        otherwise=8_192,
        reply_tokens=2_048,
        ratios={"ollama/a": 2.0},
        tokenizers=TOKENIZERS,
    )
    assert limits == PromptLimits(window=8_192 - TEMPLATE_TOKENS, reply_tokens=2_048, tokenizer="ollama")

    estimated = prompt_limits(
        ["ollama/a", "gemini/b"],
        otherwise=8_192,
        reply_tokens=2_048,
        ratios={"ollama/a": 2.0},
        tokenizers=TOKENIZERS,
    )
    assert estimated == PromptLimits(window=4_096, reply_tokens=2_048)


def test_tokenizers_are_files_by_provider_or_model(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    assert parse_tokenizers(f"ollama={file}, openai/gpt-oss={file},") == {
        "ollama": file,
        "openai/gpt-oss": file,
    }
    assert parse_tokenizers("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ollama", "PROVIDER=PATH"),
        ("ollama=", "PROVIDER=PATH"),
        ("nobody=/tokenizer.json", "PROVIDER=PATH"),
        ("reflex=/tokenizer.json", "PROVIDER=PATH.* vllm, llamacpp; got"),
        ("ollama=/none/tokenizer.json", "there is none at /none/tokenizer.json"),
        (f"ollama=/{'x' * 5_000}", "there is none at /x"),
    ],
)
def test_a_wrong_tokenizer_setting_says_what_is_right(text: str, message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        parse_tokenizers(text)


def test_a_tokenizer_file_counts_its_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(WORDS))
    assert load_counter(file)("the tide, the tide") == 5

    file.write_text("{}")
    with pytest.raises(ConfigurationInvalid, match="is no tokenizer"):
        load_counter(file)
