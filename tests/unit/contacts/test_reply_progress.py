"""Events of a partial reply: each sentence once, restarts, ends and resumption."""

from __future__ import annotations

import pytest

from arbor.contacts.reply_progress import (
    ReplyEvent,
    ReplyEventKind,
    ReplyFollower,
    ReplyProgress,
    StoredAnswer,
)


def writing(attempt: int, *sentences: str) -> ReplyProgress:
    return ReplyProgress(attempt=attempt, sentences=sentences)


def ended(content: str, *, withheld: bool = False, error: str = "") -> ReplyProgress:
    answer = StoredAnswer(id="7", content=content, is_withheld=withheld, error=error)
    return ReplyProgress(answer=answer)


def texts_of(events: list[ReplyEvent]) -> list[str]:
    return [event.text or event.kind.value for event in events]


@pytest.mark.parametrize(
    ("states", "texts"),
    [
        ([writing(0), writing(1, "One."), writing(1, "One.", " Two.")], ["One.", " Two."]),
        ([writing(1, "One."), writing(1, "One."), ended("One. Two.")], ["One.", " Two.", "done"]),
        ([ended("One. Two.")], ["One. Two.", "done"]),
        ([writing(1, "One."), ended("One.")], ["One.", "done"]),
        # Another worker writes something else, or the same.
        ([writing(1, "One."), writing(2, "Uno.")], ["One.", "restart", "Uno."]),
        ([writing(1, "One.", " Two."), writing(2, "One."), writing(2, "One.", " Two.", " Three.")],
         ["One.", " Two.", " Three."]),
        ([writing(1, "One.", " Two."), writing(2, "One."), writing(2, "One.", " Drei.")],
         ["One.", " Two.", "restart", "One.", " Drei."]),
        ([writing(1, "One."), ended("Uno.")], ["One.", "restart", "Uno.", "done"]),
        # A boundary in the middle.
        ([writing(1, "One."), ended("I do not say it.", withheld=True)], ["One.", "\n\nI do not say it.", "done"]),
        ([ended("I do not say it.", withheld=True)], ["I do not say it.", "done"]),
        ([writing(1, "One."), ended("", error="ModelTimeout")], ["One.", "ModelTimeout"]),
    ],
)  # fmt: skip
def test_a_reader_receives_each_sentence_once(states: list[ReplyProgress], texts: list[str]) -> None:
    follower = ReplyFollower()

    assert [text for state in states for text in texts_of(follower.advance(state))] == texts


def test_a_state_that_shrinks_and_grows_again_is_not_doubled() -> None:
    follower = ReplyFollower()
    follower.advance(writing(1, "One.", " Two."))

    assert follower.advance(writing(2, "One. Tw")) == []
    assert texts_of(follower.advance(writing(2, "One. Two. Three."))) == [" Three."]


@pytest.mark.parametrize(
    ("last_id", "state", "texts"),
    [
        ("1.1", writing(1, "One.", " Two."), [" Two."]),
        ("1.2", writing(1, "One.", " Two."), []),
        ("1.2", writing(2, "Uno."), ["restart", "Uno."]),
        ("1.1", ended("One. Two."), ["restart", "One. Two.", "done"]),
        ("1.1", ReplyProgress(attempt=1, sentences=["One."], answer=ended("One. Two.").answer), [" Two.", "done"]),
        ("rest", ended("One. Two."), ["done"]),
        ("done", ended("One. Two."), ["done"]),
        ("", writing(1, "One."), ["One."]),
        ("nonsense", writing(1, "One."), ["One."]),
        ("1." + "9" * 5_000, writing(1, "One."), ["One."]),
    ],
)  # fmt: skip
def test_a_reader_resumes_after_its_last_event(last_id: str, state: ReplyProgress, texts: list[str]) -> None:
    follower = ReplyFollower()

    events = [*follower.resume(last_id, state), *follower.advance(state)]

    assert texts_of(events) == texts


def test_ids_name_attempt_and_place() -> None:
    follower = ReplyFollower()

    events = [*follower.advance(writing(3, "One.", " Two.")), *follower.advance(ended("One. Two. Three."))]

    assert [event.id for event in events] == ["3.1", "3.2", "rest", "done"]
    assert [event.is_last for event in events] == [False, False, False, True]
    assert events[-1].kind is ReplyEventKind.DONE
