"""Follow a reply while it is written: new sentences, a new beginning, the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: The ids of the event with the rest of a stored answer, and of the last event.
_REST = "rest"
_DONE = "done"
#: The most characters of an id that a reader may send: attempt and place are small numbers.
_ID_LENGTH = 40


@dataclass(frozen=True, kw_only=True)
class StoredAnswer:
    """The stored end of a turn: the agent's answer, or the reason why there is none."""

    id: str
    content: str
    error: str = ""
    model: str = ""
    #: Whether a reflex or a boundary withheld the reply; the content is a refusal then.
    is_withheld: bool = False
    #: Whether the client no longer wanted an answer.
    is_canceled: bool = False


@dataclass(frozen=True, kw_only=True)
class ReplyProgress:
    """The state of a reply: the sentences of the latest attempt that may be shown, and the answer once it is stored."""

    #: Counts the attempts to write the reply; 0: no sentence was published.
    attempt: int = 0
    sentences: Sequence[str] = ()
    answer: StoredAnswer | None = None


class ReplyEventKind(StrEnum):
    """The kinds of events that a reader of a partial reply receives."""

    #: The next sentence, with the white space before it.
    SENTENCE = "sentence"
    #: The shown sentences are void: another attempt writes the reply anew.
    RESTART = "restart"
    #: The answer is stored; its content is what counts.
    DONE = "done"
    #: There is no answer.
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class ReplyEvent:
    """One event of a partial reply."""

    kind: ReplyEventKind
    #: The sentence, or the reason of an error.
    text: str = ""
    #: Names the place in the reply; a reader that lost its connection resumes after it.
    id: str = ""
    #: The stored end of the turn, with the last event.
    answer: StoredAnswer | None = None

    @property
    def is_last(self) -> bool:
        """Return whether no event follows."""
        return self.kind in {ReplyEventKind.DONE, ReplyEventKind.ERROR}


class ReplyFollower:
    """Turns the states of one reply into events for one reader, each sentence once."""

    def __init__(self) -> None:
        #: The text that the reader shows.
        self.shown = ""

    def resume(self, last_id: str, progress: ReplyProgress) -> list[ReplyEvent]:
        """Continue after the event `last_id`; return a restart where the text up to this event is no longer known."""
        if last_id in {_REST, _DONE}:
            if progress.answer is not None:
                self.shown = progress.answer.content
                return []
            return [ReplyEvent(kind=ReplyEventKind.RESTART)]
        attempt, _, count = last_id.partition(".")
        if len(last_id) > _ID_LENGTH or not (attempt.isdecimal() and count.isdecimal()):
            return []
        if int(attempt) != progress.attempt or int(count) > len(progress.sentences):
            return [ReplyEvent(kind=ReplyEventKind.RESTART)]
        self.shown = "".join(progress.sentences[: int(count)])
        return []

    def advance(self, progress: ReplyProgress) -> list[ReplyEvent]:
        """Return the events since the last state."""
        if progress.answer is not None:
            return self._end(progress.answer)
        text = "".join(progress.sentences)
        if self.shown.startswith(text):
            # Also a new attempt that has written the same so far.
            return []
        events = [] if text.startswith(self.shown) else [self._restart()]
        end = 0
        for count, sentence in enumerate(progress.sentences, start=1):
            end += len(sentence)
            if end > len(self.shown):
                events.append(self._sentence(text[len(self.shown) : end], f"{progress.attempt}.{count}"))
        return events

    def _end(self, answer: StoredAnswer) -> list[ReplyEvent]:
        if answer.error:
            return [ReplyEvent(kind=ReplyEventKind.ERROR, text=answer.error, id=_DONE, answer=answer)]
        events = []
        rest = answer.content
        if answer.content.startswith(self.shown):
            rest = answer.content[len(self.shown) :]
        elif answer.is_withheld:
            # The sentences before were permitted, so the refusal follows them.
            rest = f"\n\n{answer.content}"
        else:
            events.append(self._restart())
        if rest:
            events.append(self._sentence(rest, _REST))
        return [*events, ReplyEvent(kind=ReplyEventKind.DONE, id=_DONE, answer=answer)]

    def _restart(self) -> ReplyEvent:
        self.shown = ""
        return ReplyEvent(kind=ReplyEventKind.RESTART)

    def _sentence(self, text: str, event_id: str) -> ReplyEvent:
        self.shown += text
        return ReplyEvent(kind=ReplyEventKind.SENTENCE, text=text, id=event_id)
