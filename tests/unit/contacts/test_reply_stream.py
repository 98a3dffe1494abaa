"""Sentences of a reply that is still written: decoded, cut, checked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.contacts.chat import ANSWER_LENGTH
from arbor.contacts.chat_reply import read_chat_reply
from arbor.contacts.reply_stream import GrowingReply, SentenceSplitter, may_show
from arbor.selves.boundaries import BoundaryResponse, BoundaryRule, BoundaryType


def read(text: str, size: int = 1) -> tuple[str, str]:
    """Return the reply and the thinking, read in pieces of `size` characters."""
    reader = GrowingReply()
    reply = "".join(reader.feed(text[at : at + size]) for at in range(0, len(text), size))
    return reply, reader.thinking


def split(text: str, size: int = 1) -> list[str]:
    splitter = SentenceSplitter()
    return [sentence for at in range(0, len(text), size) for sentence in splitter.feed(text[at : at + size])]


@given(reply=st.text(), thinking=st.text(), size=st.integers(1, 9), ascii_only=st.booleans())
def test_a_reply_in_pieces_is_the_reply_as_a_whole(
    reply: str, thinking: str, size: int, ascii_only: bool
) -> None:
    text = json.dumps({"thinking": thinking, "reply": reply}, ensure_ascii=ascii_only)

    decoded, _ = read(text, size)

    if reply.strip():
        assert decoded.strip() == read_chat_reply(text).reply


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "reply", "thinking"),
    [
        ('{"thinking": "hm", "reply": "Good day."}', "Good day.", "hm"),
        ('\n{ "reply" : "Good\\n\\"day\\"." , "thinking":"hm"}', 'Good\n"day".', "hm"),
        ('```json\n{"thinking": "", "reply": "Good day."}\n```', "Good day.", ""),
        ('{"thinking": "", "reply": "\\ud83d\\ude00 é"}', "\U0001f600 é", ""),
        ('{"thinking": "", "reply": "a\nb"}', "a\nb", ""),
        ('{"thinking": "", "reply": "Good \\u0000day"}', "Good \ufffdday", ""),
        ('{"thinking": "hm", "reply": "Good d', "Good d", "hm"),
    ],
)
def test_the_reply_is_decoded_while_it_arrives(text: str, reply: str, thinking: str, size: int) -> None:
    assert read(text, size) == (reply, thinking)


@pytest.mark.parametrize(
    "text",
    [
        "Good day. I am well.",
        "Here it is: {}",
        '{"answer": "Good day."}',
        '{"thinking": 7, "reply": "Good day."}',
        "{'thinking': '', 'reply': 'Good day.'}",
        '[{"reply": "Good day."}]',
        "",
    ],
)
def test_another_text_is_not_shown_early(text: str) -> None:
    assert read(text)[0] == ""


def test_a_repeated_key_and_an_unknown_escape_end_the_reading() -> None:
    assert read('{"reply": "One.", "reply": "Two."}')[0] == "One."
    assert read('{"thinking": "", "reply": "It\\\'s fine."}')[0] == "It"


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (" Good day, Nora. How are you? I", ["Good day, Nora.", " How are you?"]),
        ("It is 3.14 metres. Yes", ["It is 3.14 metres."]),
        ("He said “stop!” Then he", ["He said “stop!”"]),
        ("Two steps:\n1. Go there.\n2. Come", ["Two steps:", "\n1. Go there."]),
        ("Yes. I do so. And", ["Yes. I do so."]),
        ("今日は。元気ですか。さよう", ["今日は。元気ですか。"]),
        ("no end", []),
    ],
)
def test_a_text_comes_up_to_the_end_of_its_last_sentence(text: str, sentences: list[str], size: int) -> None:
    assert "".join(split(text, size)) == "".join(sentences)


def test_sentences_come_as_soon_as_the_next_begins() -> None:
    splitter = SentenceSplitter()

    assert splitter.feed("Good day, Nora.") == []
    assert splitter.feed(" How") == ["Good day, Nora."]


@given(text=st.text(alphabet="ab. \n!?。”"), size=st.integers(1, 9))
def test_sentences_are_the_beginning_of_the_text(text: str, size: int) -> None:
    assert text.strip().startswith("".join(split(text, size)))


def test_sentences_end_before_the_longest_answer() -> None:
    text = "A short sentence. " * (ANSWER_LENGTH // 10)

    shown = "".join(split(text, 500))

    assert len(shown) < ANSWER_LENGTH
    assert read_chat_reply(json.dumps({"reply": text})).reply.startswith(shown)


def test_text_that_is_never_shown_is_not_searched_again() -> None:
    reading, splitter = GrowingReply(), SentenceSplitter()
    # Searched from its beginning with each piece, either text would take minutes.
    for _ in range(30_000):
        reading.feed(" ")
        assert splitter.feed("a") == []

    assert reading.feed('{"reply": "Good day."}') == ""
    assert splitter.feed(". And so on") == []


def rule(response: BoundaryResponse, flexibility: float = 0.0) -> BoundaryRule:
    return BoundaryRule(
        name="harbour_secret",
        type=BoundaryType.ETHICAL,
        response=response,
        patterns=("gate code",),
        flexibility=flexibility,
    )


@pytest.mark.parametrize(
    ("sentence", "before", "shown"),
    [
        ("The tide is high.", "", True),
        ("The gate code is 4711.", "", False),
        (" code is 4711.", "I know the gate", False),
        (" The tide is high.", "The gate is closed.", True),
    ],
)
def test_a_sentence_at_a_boundary_is_not_shown(sentence: str, before: str, shown: bool) -> None:
    boundaries = [rule(BoundaryResponse.REFUSE)]

    assert may_show(sentence, before=before, boundaries=boundaries, vectors={}, thinking="") is shown


def test_a_sentence_near_an_example_is_not_shown() -> None:
    boundary = BoundaryRule(
        name="calm", type=BoundaryType.ETHICAL, response=BoundaryResponse.REFUSE, examples=("shout",)
    )
    vectors = {"I shout.": [1.0, 0.1], "shout": [1.0, 0.0]}

    assert not may_show("I shout.", before="", boundaries=[boundary], vectors=vectors, thinking="")


@pytest.mark.parametrize(
    ("response", "thinking", "shown"),
    [
        (BoundaryResponse.FLAG, "", True),
        (BoundaryResponse.NEGOTIATE, "", False),
        (BoundaryResponse.NEGOTIATE, f"harbour secret: {'because she owns it ' * 6}", True),
    ],
)
def test_a_flagged_or_negotiated_sentence_is_shown(
    response: BoundaryResponse, thinking: str, shown: bool
) -> None:
    boundaries = [rule(response, flexibility=0.5)]

    assert (
        may_show("The gate code.", before="", boundaries=boundaries, vectors={}, thinking=thinking) is shown
    )


def test_a_sentence_with_a_secret_is_not_shown() -> None:
    key = f"ghp_{'a' * 36}"

    assert not may_show(f"It is {key}.", before="", boundaries=[], vectors={}, thinking="")
    assert may_show("It is in the safe.", before="", boundaries=[], vectors={}, thinking="")
