"""Requests of chat clients: the turn, the note and the conversation."""

from __future__ import annotations

import pytest

from arbor.contacts.client_messages import ClientMessage, check_client_name, read_client_turn
from arbor.errors import Invalid


def messages(*texts: tuple[str, str]) -> list[ClientMessage]:
    return [ClientMessage(role=role, text=text) for role, text in texts]


BEGUN = messages(("system", "Be brief."), ("user", "Hello"))
LATER = messages(("user", "Hello"), ("assistant", "Good day."), ("developer", " "), ("user", "And now?"))


def test_the_last_message_of_the_user_is_the_turn() -> None:
    turn = read_client_turn(LATER)

    assert (turn.text, turn.note) == ("And now?", "")


def test_the_clients_own_messages_are_its_note() -> None:
    assert read_client_turn(BEGUN).note == "Be brief."


def test_a_conversation_is_known_by_its_first_words() -> None:
    assert read_client_turn(BEGUN).key == read_client_turn(LATER).key != ""
    assert read_client_turn(messages(("user", "Hi"))).key != read_client_turn(BEGUN).key


def test_a_named_conversation_is_known_by_its_name() -> None:
    first, second = (read_client_turn(BEGUN, conversation=name, has_user=True).key for name in ("a", "b"))

    assert first != second
    assert first == read_client_turn(LATER, conversation="a").key


def test_a_named_user_has_one_conversation() -> None:
    assert read_client_turn(BEGUN, has_user=True).key == ""


@pytest.mark.parametrize("texts", [[], [("system", "x")], [("user", "a"), ("user", " ")]])
def test_a_request_without_a_message_is_refused(texts: list[tuple[str, str]]) -> None:
    with pytest.raises(Invalid, match="last message of the role user"):
        read_client_turn(messages(*texts))


@pytest.mark.parametrize("name", ["x" * 151, "a\nb", "a\0"])
def test_a_name_is_one_short_line(name: str) -> None:
    with pytest.raises(Invalid, match="150 printable"):
        check_client_name("user", name)
