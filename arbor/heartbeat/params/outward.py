"""Parameters of inquiries and messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from arbor.heartbeat.params.parts import QUERY_LENGTH, REASON_LENGTH, ActionParams, needed_text, text_list

#: Seed 004, 3.2.4: queries of a shallow and of a deep inquiry, at most.
SHALLOW_QUERIES = 2
DEEP_QUERIES = 5
#: Characters of a message to users, and of its subject line.
MESSAGE_LENGTH = 4_000
SUBJECT_LENGTH = 150

Query = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_LENGTH)]


class InquireParams(ActionParams):
    """A question."""

    question: Annotated[str, needed_text("what you want to know", most=QUERY_LENGTH)]


class InquireShallowParams(InquireParams):
    """A question and its searches."""

    queries: Annotated[
        tuple[Query, ...],
        Field(max_length=SHALLOW_QUERIES, description="1 or 2 web searches for it (default: the question)"),
        text_list("1 or 2 web searches for it (default: the question)", most=SHALLOW_QUERIES),
    ] = ()


class InquireDeepParams(InquireParams):
    """A question and its searches."""

    queries: Annotated[
        tuple[Query, ...],
        Field(
            max_length=DEEP_QUERIES,
            description="3 to 5 web searches for it (default: made from the question)",
        ),
        text_list("3 to 5 web searches for it (default: made from the question)", most=DEEP_QUERIES),
    ] = ()


class ReachOutUserParams(ActionParams):
    """A message to the users."""

    intent: Annotated[str, needed_text("why it is worth their attention", most=REASON_LENGTH)]
    content: Annotated[str, needed_text("the message itself", most=MESSAGE_LENGTH)]
    subject: Annotated[
        str,
        StringConstraints(max_length=SUBJECT_LENGTH),
        Field(description=f"its subject line, up to {SUBJECT_LENGTH} characters (default: the beginning)"),
    ] = ""


class ReachOutPublicParams(ReachOutUserParams):
    """A message to everybody."""

    platform: Annotated[
        str,
        StringConstraints(max_length=100),
        Field(description="name of the public channel (default: the only one there is)"),
    ] = ""
