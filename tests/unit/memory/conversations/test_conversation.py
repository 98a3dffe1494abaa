"""Conversations in three formats, parsed turn by turn, with listed errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arbor.errors import ConversationInvalid
from arbor.memory.conversations.conversation import MAX_LINE_BYTES, ConversationFormat, open_conversation
from arbor.memory.conversations.turns import BadLine, Turn

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


def parse_file(
    path: Path, content: str | bytes, *, sample: str | None = None
) -> tuple[ConversationFormat, list[Turn], list[BadLine]]:
    """Write the content to the file; return its format, its turns and its bad lines."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    conversation = open_conversation(path, start=START, sample=sample)
    items = list(conversation.items)
    for item in items:
        assert 1 <= (item.line if isinstance(item, Turn) else item.number) <= conversation.total
    turns = [item for item in items if isinstance(item, Turn)]
    return conversation.format, turns, [item for item in items if isinstance(item, BadLine)]


def utterances(turns: list[Turn]) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in turns]


def reasons(bad: list[BadLine]) -> dict[int, str]:
    return {line.number: line.reason for line in bad}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a file that a test writes."""
    return tmp_path / "talk.txt"


# --- LoCoMo ----------------------------------------------------------------------------------------------


def dialog(sample: str = "conv-1", **changes: Any) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Caroline",
        "session_10": [{"speaker": "Melanie", "dia_id": "D10:1", "text": "Bye!"}],
        "session_10_date_time": "12:05 am on 1 January, 2024",
        "session_2": [
            {"speaker": "Caroline", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a blue kettle"},
            {"speaker": "Melanie", "dia_id": "D2:2", "text": "Nice."},
        ],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
    }
    return {"sample_id": sample, "conversation": conversation | changes, "qa": []}


def test_a_locomo_dialog_is_read_by_session_in_order_of_time(file: Path) -> None:
    format_, turns, bad = parse_file(file, json.dumps(dialog()))
    assert format_ is ConversationFormat.LOCOMO
    assert utterances(turns) == [
        ("Caroline", "Look! [image: a blue kettle]"),
        ("Melanie", "Nice."),
        ("Melanie", "Bye!"),
    ]
    assert [turn.session for turn in turns] == ["conv-1/session_2", "conv-1/session_2", "conv-1/session_10"]
    assert [turn.position for turn in turns] == [0, 1, 0]
    assert turns[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert turns[0].at < turns[1].at < turns[2].at == datetime(2024, 1, 1, 0, 5, tzinfo=UTC)
    assert turns[2].source_id == "D10:1"
    assert bad == []


def test_an_empty_session_is_skipped(file: Path) -> None:
    _, turns, bad = parse_file(file, json.dumps(dialog(session_3=[], session_3_date_time="soon")))
    assert len(turns) == 3
    assert bad == []


def test_a_sample_of_another_format_is_refused(file: Path) -> None:
    with pytest.raises(ConversationInvalid, match="no sample 'conv-1': only a file of LoCoMo has samples"):
        parse_file(file, "Ada: Hello.", sample="conv-1")


def test_one_of_several_dialogs_is_chosen_by_its_sample(file: Path) -> None:
    both = json.dumps([dialog("conv-1"), dialog("conv-2")], indent=1)
    _, turns, _ = parse_file(file, both, sample="conv-2")
    assert turns[0].session == "conv-2/session_2"
    for sample in (None, "conv-3"):
        with pytest.raises(ConversationInvalid, match="name one of them as the sample: conv-1, conv-2"):
            parse_file(file, both, sample=sample)
    with pytest.raises(ConversationInvalid, match="contains one dialog, conv-1, and no sample 'conv-3'"):
        parse_file(file, json.dumps(dialog("conv-1")), sample="conv-3")
    many = json.dumps([dialog(f"conv-{number}") for number in range(25)])
    with pytest.raises(ConversationInvalid, match=r"25 dialogs; .*, conv-19 and 5 more$"):
        parse_file(file, many)


def test_a_document_on_one_very_long_line_is_read(file: Path) -> None:
    long = [{"speaker": "Caroline", "text": f"word {n} " * 50} for n in range(2_000)]
    _, turns, bad = parse_file(file, json.dumps(dialog(session_2=long)))
    assert len(turns) == 2_001
    assert bad == []


def test_bad_turns_and_dates_of_a_dialog_are_listed_by_number(file: Path) -> None:
    turns_of_2 = [
        "hello",
        {"text": "who?"},
        {"speaker": "Caroline", "text": 7},
        {"speaker": "Caroline", "text": " "},
        {"speaker": "Caroline", "text": "Fine."},
    ]
    _, turns, bad = parse_file(
        file, json.dumps(dialog(session_2=turns_of_2, session_2_date_time="soon", session_10_date_time=None))
    )
    assert utterances(turns) == [("Caroline", "Fine."), ("Melanie", "Bye!")]
    assert turns[0].position == 4
    assert turns[0].at == START + timedelta(seconds=120)
    assert turns[1].at > turns[0].at
    assert [line.number for line in bad] == [1, 1, 2, 3, 4, 6]
    assert bad[0].reason == "session_2_date_time must be like '1:56 pm on 8 May, 2023', got 'soon'"
    assert "must be an object, got str" in bad[1].reason
    assert "white space only" in bad[4].reason


# --- Lines of JSON ---------------------------------------------------------------------------------------


def lines(*records: Any) -> str:
    return "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)


def test_messages_are_read_with_their_times_in_every_form(file: Path) -> None:
    format_, turns, bad = parse_file(
        file,
        "\ufeff"
        + lines(
            {"role": "user", "content": "Hi", "timestamp": "2024-05-01T10:00:00+02:00"},
            "",
            {"role": "assistant", "content": [{"type": "text", "text": "Hello."}, {"type": "image"}]},
            {"role": "user", "name": "Grace", "content": "Look.", "timestamp": 1_714_550_405},
            {"role": "user", "content": "And?", "timestamp": 1_714_550_406_000},
        ),
    )
    assert format_ is ConversationFormat.MESSAGES
    assert utterances(turns) == [
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("Grace", "Look."),
        ("user", "And?"),
    ]
    assert [turn.line for turn in turns] == [1, 3, 4, 5]
    eight = datetime(2024, 5, 1, 8, tzinfo=UTC)
    assert [turn.at - eight for turn in turns] == [timedelta(seconds=s) for s in (0, 1, 5, 6)]
    assert bad == []


def test_a_long_silence_begins_a_new_session(file: Path) -> None:
    stamps = ["2024-05-01T10:00", "2024-05-01T10:30", "2024-05-01T11:00:01", "2024-05-01T11:05"]
    _, turns, _ = parse_file(
        file, lines(*({"role": "user", "content": "Hm.", "timestamp": stamp} for stamp in stamps))
    )
    assert [(turn.session, turn.position) for turn in turns] == [
        ("talk/1", 0),
        ("talk/1", 1),
        ("talk/2", 0),
        ("talk/2", 1),
    ]


def test_bad_messages_are_listed_and_preserve_positions(file: Path) -> None:
    _, turns, bad = parse_file(
        file,
        lines(
            {"role": "user", "content": "first"},
            "{broken",
            ["a list"],
            {"role": 3, "content": "x"},
            {"role": "assistant", "content": None},
            {"role": "user", "content": ""},
            {"role": "user", "content": "x", "timestamp": "noon"},
            {"role": "user", "content": "x", "timestamp": 1e300},
            {"role": "user", "content": "x", "timestamp": True},
            {"role": "user", "content": "x", "timestamp": "9999-12-31T23:59:59"},
            {"role": "user", "content": "half \ud83d"},
            {"role": "user", "content": "nul \0"},
            {"role": "u" * 101, "content": "x"},
            {"role": "user", "content": "x" * 70_000},
            "[" * 100_000,
            {"role": "user", "content": "last"},
        ),
    )
    assert utterances(turns) == [("user", "first"), ("user", "last")]
    assert [turn.position for turn in turns] == [0, 15]
    errors = reasons(bad)
    assert list(errors) == list(range(2, 16))
    assert errors[2] == "expected a JSON object with role and content, got '{broken'"
    assert errors[4] == "role must be a string such as 'user', got 3"
    assert errors[5] == "content must be a string, got None"
    assert errors[7] == "timestamp must be ISO 8601 or seconds since 1970, got 'noon'"
    assert "at most 65,536 bytes of UTF-8, got 70,000" in errors[14]


def test_invalid_bytes_are_listed_as_a_bad_line(file: Path) -> None:
    good = json.dumps({"role": "user", "content": "Hi"}).encode()
    _, turns, bad = parse_file(file, b"\n".join([good, b"\xff\xfe", b"x" * (3 * MAX_LINE_BYTES), good]))
    assert [turn.line for turn in turns] == [1, 4]
    assert reasons(bad) == {
        2: "not UTF-8 at byte 1: invalid start byte",
        3: f"a line must have at most {MAX_LINE_BYTES:,} bytes",
    }


# --- Plain -----------------------------------------------------------------------------------------------


def test_plain_text_is_read_with_continued_lines_and_times(file: Path) -> None:
    format_, turns, bad = parse_file(
        file,
        "Dr. Grace Hopper: It is a moth.\r\n"
        "   In the relay.\r\n"
        "\r\n"
        "[2024-05-01 10:30] Bob: See https://moth.test: fine\n"
        "[2024-13-01 10:30] Bob: when?\n"
        "[someday] Bob: when?\n"
        "no speaker here\n"
        "https://moth.test\n"
        "12: thirteen\n"
        "Bob:\n",
    )
    assert format_ is ConversationFormat.PLAIN
    assert utterances(turns) == [
        ("Dr. Grace Hopper", "It is a moth.\nIn the relay."),
        ("Bob", "See https://moth.test: fine"),
    ]
    assert [turn.at for turn in turns] == [START, datetime(2024, 5, 1, 10, 30, tzinfo=UTC)]
    assert [turn.session for turn in turns] == ["talk/1", "talk/2"]
    errors = reasons(bad)
    assert list(errors) == [5, 6, 7, 8, 9, 10]
    assert errors[5] == "the time must be ISO 8601, as in [2024-05-01 10:30], got [2024-13-01 10:30]"
    assert errors[7] == "expected `Speaker: text`, got 'no speaker here'"


def test_plain_text_that_begins_with_a_time_is_not_read_as_json(file: Path) -> None:
    format_, turns, _ = parse_file(file, "[2024-05-01 10:30] Grace: Hello.\n[2024-05-01 10:31] Ada: Hello.\n")
    assert format_ is ConversationFormat.PLAIN
    assert utterances(turns) == [("Grace", "Hello."), ("Ada", "Hello.")]


def test_a_format_that_is_named_is_not_guessed(file: Path) -> None:
    file.write_text("Grace: Hello.\n", encoding="utf-8")
    conversation = open_conversation(file, start=START, form=ConversationFormat.MESSAGES)
    assert conversation.format is ConversationFormat.MESSAGES
    assert [type(item) for item in conversation.items] == [BadLine]


def test_turns_without_times_follow_each_other(file: Path) -> None:
    _, turns, _ = parse_file(file, "A: one\nB: two\nA: three\n")
    assert [turn.at - START for turn in turns] == [timedelta(seconds=s) for s in (0, 1, 2)]


def test_reading_again_gives_the_same_turns(file: Path) -> None:
    content = "A: one\nbad\nB: two\n"
    assert parse_file(file, content) == parse_file(file, content)


def test_a_turn_becomes_a_memory_with_its_source(file: Path) -> None:
    _, turns, _ = parse_file(file, json.dumps(dialog()))
    memory = turns[0].as_memory(source="ingest:talk.json")
    assert memory.content == "Look! [image: a blue kettle]"
    assert (memory.role, memory.session, memory.position) == ("Caroline", "conv-1/session_2", 0)
    assert memory.occurred_at == turns[0].at
    assert memory.detail == {"source_id": "D2:1"}


# --- Unreadable files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must be text in UTF-8, got nothing"),
        (" \n\n ", "got nothing"),
        (b"\x89PNG\r\n\x00\x00", "got a binary file or another encoding"),
        ("Alice: hi".encode("utf-16"), "got a binary file or another encoding"),
        ("once upon a time", "is no conversation"),
        ("{", "cannot be read: Expecting"),
        ("[]", "no LoCoMo dialog"),
        ('{"conversation": 7}', "no LoCoMo dialog"),
        ('{"session_1": "x"}', "no LoCoMo dialog"),
        ("[" * 100_000, "nested too deeply"),
        (b"{" + b"\xff", "cannot be read: 'utf-8' codec"),
    ],
)
def test_a_file_without_a_conversation_is_refused(file: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(ConversationInvalid, match=message):
        parse_file(file, content)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConversationInvalid, match=r"nowhere\.txt cannot be read: No such file"):
        open_conversation(tmp_path / "nowhere.txt", start=START)
    with pytest.raises(ConversationInvalid, match="cannot be read: Is a directory"):
        open_conversation(tmp_path, start=START)


def test_a_file_deleted_while_it_is_read_is_named(file: Path) -> None:
    file.write_text("A: one\n")
    conversation = open_conversation(file, start=START)
    file.unlink()
    with pytest.raises(ConversationInvalid, match="cannot be read: No such file"):
        next(conversation.items)


KEYS = (
    *("role", "content", "timestamp", "name", "type", "conversation", "sample_id"),
    *("session_1", "session_1_date_time", "speaker", "text", "blip_caption", "dia_id"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)
ANY_FILES = (
    st.binary(max_size=400)
    | st.text(max_size=400).map(lambda text: text.encode(errors="surrogatepass"))
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.lists(JSON, max_size=6).map(lambda values: lines(*values).encode())
    | st.lists(st.text(max_size=40).map(lambda text: f"A: {text}"), max_size=6).map(
        lambda texts: "\n".join(texts).encode(errors="replace")
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(content=ANY_FILES)
def test_any_input_is_read_listed_or_refused(file: Path, content: bytes) -> None:
    try:
        _, turns, _ = parse_file(file, content)
    except ConversationInvalid:
        return
    for turn in turns:
        turn.as_memory(source="ingest:talk.txt")
