"""Buffer items and the words of their searches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.buffer import DEFAULT_LIFETIME, LONGEST_LIFETIME, NewBufferItem, word_share_weights
from arbor.memory.importance import DEFAULT_WORDS
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
    assert NewBufferItem(content="A parcel came.", importance=0.9).appraised_importance(DEFAULT_WORDS) == 0.9
    assert NewBufferItem(content="Good morning!", role="user").appraised_importance(DEFAULT_WORDS) < 0.2


@pytest.mark.parametrize(
    ("sender", "importance"),
    [({"role": "user"}, 1.0), ({"source": "operator"}, 1.0), ({"role": "Vega"}, 0.5)],
)
def test_only_people_can_ask_to_remember(sender: dict[str, Any], importance: float) -> None:
    item = NewBufferItem(content="Remember this: the door code is 4711.", **sender)
    assert item.appraised_importance(DEFAULT_WORDS) == importance


def share_of(query: str, text: str) -> float:
    """Return the weighted share of the query's words that a text has."""
    stored = document_vector(text)
    return sum(weight * stored.get(term, 0) for term, weight in word_share_weights(query).items())


def test_more_common_words_raise_the_share_up_to_one() -> None:
    texts = ("The courier left a parcel.", "A parcel came.", "It rains.")
    both, one, none = (share_of("parcel courier", text) for text in texts)
    assert both > one > 0 == none
    assert share_of("parcel courier", "parcel courier " * 50) <= 1


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_share_of_words_stays_between_none_and_all(query: str, text: str) -> None:
    assert -1e-9 <= share_of(query, text) <= 1 + 1e-9
