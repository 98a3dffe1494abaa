"""Embedding models as values, and the setting that makes storing wait for vectors."""

from __future__ import annotations

import pytest

from arbor.embedding.models import NAME_LENGTH, EmbedAtStorage, EmbeddingModel
from arbor.errors import ConfigurationInvalid


def test_models_are_the_same_when_name_and_dimension_are() -> None:
    one = EmbeddingModel(name="tei/bge-small", dimension=384)
    assert one == EmbeddingModel(name="tei/bge-small", dimension=384)
    assert one != EmbeddingModel(name="tei/bge-small", dimension=256)
    assert str(one) == "tei/bge-small of 384 dimensions"


@pytest.mark.parametrize(
    ("name", "dimension", "message"),
    [
        ("", 256, "is 1 to 80 characters, got 0"),
        ("x" * (NAME_LENGTH + 1), 256, "is 1 to 80 characters, got 81"),
        ("wordllama", 0, "at least 1, got 0"),
        ("wordllama", -5, "at least 1, got -5"),
    ],
)
def test_an_impossible_model_name_or_dimension_is_refused(name: str, dimension: int, message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        EmbeddingModel(name=name, dimension=dimension)


@pytest.mark.parametrize(
    ("setting", "in_process", "waits"),
    [
        ("auto", True, True),
        ("auto", False, False),
        ("always", True, True),
        (" Always", False, True),
        ("never", True, False),
        ("never", False, False),
    ],
)
def test_storing_waits_for_vectors_as_configured(setting: str, in_process: bool, waits: bool) -> None:
    assert EmbedAtStorage.parse(setting).waits(in_process=in_process) is waits


def test_another_setting_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(ConfigurationInvalid, match="is auto, always, never, got 'sometimes'"):
        EmbedAtStorage.parse("sometimes")
