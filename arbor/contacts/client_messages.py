"""Read the request of a chat client: the new message, the client's own words, and the conversation of the message.

Chat clients have no conversations on the server: each request repeats all messages. Arbor remembers them itself, so only
the last message of the person is a turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from arbor.contacts.chat_prompt import NOTE_LENGTH
from arbor.errors import Invalid
from arbor.models.json_text import storable
from arbor.quotations import shorten

#: Characters of the name of a client's user, or of a conversation.
NAME_LENGTH = 150
_KEY_LENGTH = 32
#: Marks of the requests in which Open WebUI itself asks a model for titles, tags and suggestions.
_TASK_OPENING, _TASK_MARK = "### Task:", "<chat_history>"
#: The roles of messages that a client writes itself.
_CLIENT_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, kw_only=True)
class ClientMessage:
    """One message of a request."""

    role: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ClientTurn:
    """A turn in a client's request."""

    text: str
    #: The client's system prompt: material, never an instruction.
    note: str
    #: Names the conversation among those of the person; empty: the person's only one.
    key: str
    #: The client's id of the message, by which a repeated request finds its turn; empty: it has none.
    message_id: str = ""

    def digest(self, agent_id: UUID, person: str) -> str | None:
        """Return a digest that no other message of the tenant has; None without an id."""
        return _digest(f"{agent_id}\n{person}", self.message_id) if self.message_id else None


def read_client_turn(
    messages: Sequence[ClientMessage], *, conversation: str = "", has_user: bool = False
) -> ClientTurn:
    """Find the turn in the messages of a request, and its conversation.

    The conversation is the one that the client names; without a name, the only one of a named user; else that of the
    client's first words. Raises Invalid without a message of a user, and for a task that the client itself sets.
    """
    texts = [message.text for message in messages if message.role == "user"]
    if not texts or not texts[-1].strip():
        raise Invalid("messages need a last message of the role user, with text")
    if len(texts) == 1 and texts[0].startswith(_TASK_OPENING) and _TASK_MARK in texts[0]:
        raise Invalid(
            "titles, tags and suggestions are no conversation, and the agent would remember them: "
            "choose another task model in the client, or switch them off"
        )
    note = "\n".join(
        message.text.strip() for message in messages if message.role in _CLIENT_ROLES and message.text.strip()
    )
    return ClientTurn(
        text=texts[-1],
        note=shorten(storable(note), NOTE_LENGTH),
        key=_conversation_key(conversation, texts[0], has_user=has_user),
    )


def check_client_name(what: str, name: str) -> str:
    """Return the name of a user or conversation that a client chose, in one line. Raises Invalid."""
    name = name.strip()
    if len(name) > NAME_LENGTH or not name.isprintable():
        raise Invalid(f"{what} has at most {NAME_LENGTH} printable characters, got {name[:NAME_LENGTH]!r}")
    return name


def _conversation_key(conversation: str, first_text: str, *, has_user: bool) -> str:
    if conversation:
        return _digest("named", conversation)
    return "" if has_user else _digest("begins", first_text)


def _digest(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind}\n{text}".encode(errors="replace")).hexdigest()[:_KEY_LENGTH]
