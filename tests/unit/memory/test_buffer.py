"""Buffer items and the words of their searches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.buffer import DEFAULT_LIFETIME, LONGEST_LIFETIME, NewBufferItem, word_share_weights
from arbor.memory.text.lexical import document_vector


@pytest.mark.parametrize(
    "parts",
    [
        {"content": " "},
        {"content": "a\0b"},
        {"lasts": timedelta(0)},
        {"lasts": timedelta(days=-1)},
        {"lasts": LONGEST_LIFETIME + timedelta(seconds=1)},
        {"importance": float("nan")},
        {"importance": 1.1},
        {"role": "x" * 101},
        {"source": "\0"},
        {"source": "\ud800"},
    ],
)
def test_an_invalid_buffer_item_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        NewBufferItem(**{"content": "A parcel came.", **parts})


def test_an_item_expires_after_a_day_and_has_an_importance() -> None:
    assert NewBufferItem(content="A parcel came.").lasts == DEFAULT_LIFETIME == timedelta(days=1)
    assert NewBufferItem(content="A parcel came.", importance=0.9).appraised_importance == 0.9
    assert (
        NewBufferItem(content="Remember this: the door code is 4711.", role="user").appraised_importance
        == 1.0
    )
    assert (
        NewBufferItem(content="Remember this: the door code is 4711.", source="operator").appraised_importance
        == 1.0
    )
    assert (
        NewBufferItem(content="Remember this: the door code is 4711.", role="Vega").appraised_importance
        == 0.5
    )
    assert NewBufferItem(content="Good morning!", role="user").appraised_importance < 0.2


def test_more_common_words_raise_the_share_up_to_one() -> None:
    query = word_share_weights("parcel courier")

    def share(text: str) -> float:
        stored = document_vector(text)
        return sum(weight * stored.get(place, 0) for place, weight in query.items())

    assert share("The courier left a parcel.") > share("A parcel came.") > 0 == share("It rains.")
    assert share("parcel courier " * 50) <= 1


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_share_of_words_stays_between_none_and_all(query: str, text: str) -> None:
    stored = document_vector(text)
    assert (
        -1e-9
        <= sum(weight * stored.get(place, 0) for place, weight in word_share_weights(query).items())
        <= 1 + 1e-9
    )
