"""Talk to an agent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any

import click
from django.db import connections
from rich.markup import escape

from apps.agents.models import Agent
from apps.agents.services.lookup import own_model
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import (
    EndedSession,
    answer_turn,
    end_session,
    open_session,
    receive_turn,
    stored_answer_to,
)
from apps.contacts.services.chat_history import history
from apps.contacts.services.partial_replies import follow_reply
from apps.default_model import default_model
from apps.heartbeats.services.calls.calls import execute_call
from apps.tenants.scope import tenant_transaction
from arbor.contacts.reply_progress import ReplyEvent, ReplyEventKind
from arbor.contacts.values import Speaker
from arbor.errors import Invalid
from arbor.models.handles import is_reflex
from config.cli.kit.declarations import is_given
from config.cli.kit.output import console, print_note, show
from config.cli.kit.tenancy import ChosenAgent, actor, with_agent
from config.cli.kit.text_files import read_text


@with_agent
def chat(agent: ChosenAgent, *, message: str | None, shows_history: bool, limit: int, as_json: bool) -> None:
    """Talk to an agent; Ctrl-D ends it. The agent remembers the conversation."""
    if shows_history and message is not None:
        raise click.UsageError("give --message or --history, not both")
    if is_given("limit") and not shows_history:
        raise click.UsageError("--limit is the number of turns that --history shows")
    if shows_history:
        _show_history(agent, limit, as_json)
    elif message is not None:
        _send_once(agent, read_text(sys.stdin) if message == "-" else message, as_json)
    elif as_json:
        raise click.UsageError("--json needs --message or --history: a conversation is for people")
    else:
        _converse(agent)


def _send_once(agent: ChosenAgent, text: str, as_json: bool) -> None:
    """Send one message; an open conversation continues, a new one ends after the answer."""
    session = _open(agent)
    is_new = session.started_at == session.last_at
    answer = _send_turn(agent, session.id, text, shown=not as_json)
    ended = _end(agent, session.id) if is_new else None
    value = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "conversation": session.id,
        **_turn_value(answer),
        "ended": ended is not None,
        "significance": ended.significance if ended else None,
        "heartbeat_follows": ended.heartbeat_follows if ended else None,
    }
    if as_json:
        show(value, as_json=True, text="")
    elif ended is not None:
        print_note(_ending(agent, ended))
    if answer.error:
        raise click.exceptions.Exit(1)


def _converse(agent: ChosenAgent) -> None:
    session = _open(agent)
    print_note(f"talking to {agent.name}; Ctrl-D ends it")
    if is_reflex(_model_of(agent)):
        print_note("no language model answers: the agent answers by rule, from memory")
    while (text := _read_line()) is not None:
        # A conversation that was idle, or ended elsewhere, starts again.
        session = _open(agent)
        try:
            _send_turn(agent, session.id, text, shown=True)
        except Invalid as refusal:
            print_note(str(refusal))
    print_note(_ending(agent, _end(agent, session.id)))


def _model_of(agent: ChosenAgent) -> str:
    with tenant_transaction(agent.tenant_id):
        row = Agent.objects.select_related("tenant").get(id=agent.id)
        return own_model(row) or default_model()


def _open(agent: ChosenAgent) -> ChatSession:
    with tenant_transaction(agent.tenant_id):
        return open_session(agent_id=agent.id, person=actor())


def _read_line() -> str | None:
    """Return the next line of input; None at its end."""
    while True:
        if sys.stdin.isatty():
            click.secho("you> ", fg="cyan", bold=True, nl=False)
        line = _read_input()
        if not line:
            click.echo()
            return None
        if line.strip():
            return line


def _read_input() -> str:
    try:
        return sys.stdin.readline()
    except UnicodeDecodeError as error:
        raise Invalid("standard input must be text in UTF-8") from error


def _send_turn(agent: ChosenAgent, session_id: Any, text: str, *, shown: bool) -> ChatMessage:
    """Send a turn and return its answer; with `shown`, print the sentences of the reply as they arrive."""
    with tenant_transaction(agent.tenant_id):
        turn = receive_turn(session_id=session_id, text=text, enqueued=False)
    answering = _run_in_background(
        partial(answer_turn, tenant_id=agent.tenant_id, turn_id=turn.id, execute=execute_call)
    )
    events = follow_reply(tenant_id=agent.tenant_id, turn_id=turn.id, is_over=answering.done)
    with _thinking(agent):
        first = [*islice(events, 1)]
    for event in chain(first, events):
        if shown:
            _show_event(agent, event, is_first=event in first)
    answering.result()
    with tenant_transaction(agent.tenant_id):
        return stored_answer_to(turn)


def _run_in_background[T](work: Callable[[], T]) -> Future[T]:
    """Run the work in a daemon thread, which ends with the process, and return the future of its result."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 (raised again by whoever asks for the result)
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            connections.close_all()

    threading.Thread(target=run, name="answer", daemon=True).start()
    return future


def _show_event(agent: ChosenAgent, event: ReplyEvent, *, is_first: bool) -> None:
    screen = console()
    match event.kind:
        case ReplyEventKind.SENTENCE:
            if is_first:
                screen.print(f"[bold]{escape(agent.name)}>[/bold] ", end="")
            screen.print(event.text, end="", markup=False, soft_wrap=True)
        case ReplyEventKind.RESTART:
            screen.print()
            print_note("the reply was broken off and begins anew")
        case ReplyEventKind.DONE:
            screen.print()
        case ReplyEventKind.ERROR:
            screen.print(f"{'' if is_first else '\n'}{_failure(event.text)}")


def _end(agent: ChosenAgent, session_id: Any) -> EndedSession:
    with tenant_transaction(agent.tenant_id):
        return end_session(session_id=session_id)


@contextmanager
def _thinking(agent: ChosenAgent) -> Iterator[None]:
    """Show a spinner on a terminal's standard error."""
    if not sys.stderr.isatty():
        yield
        return
    with console(err=True).status(f"{escape(agent.name)} thinks…"):
        yield


def _turn_line(agent: ChosenAgent, turn: ChatMessage) -> str:
    if turn.error:
        return _failure(turn.error)
    return f"[bold]{escape(agent.name)}>[/bold] {escape(turn.content)}"


def _failure(reason: str) -> str:
    return f"[red]no answer:[/red] {escape(reason)}"


def _ending(agent: ChosenAgent, ended: EndedSession) -> str:
    follows = (
        f"a heartbeat of {agent.name} follows at once"
        if ended.heartbeat_follows
        else "no heartbeat follows because of it"
    )
    return f"the conversation is over; significance {ended.significance:.2f}: {follows}"


def _turn_value(turn: ChatMessage) -> dict[str, Any]:
    return {
        "speaker": turn.speaker,
        "content": turn.content,
        "model": turn.model,
        "error": turn.error,
        "boundaries": turn.detail.get("boundaries", []),
        "summarized": turn.detail.get("summarized", []),
        "at": turn.at,
    }


def _show_history(agent: ChosenAgent, limit: int, as_json: bool) -> None:
    with tenant_transaction(agent.tenant_id):
        turns = history(agent_id=agent.id, limit=limit)
    value = {
        "agent": agent.name,
        "turns": [
            {"person": turn.session.person, "conversation": turn.session_id, **_turn_value(turn)}
            for turn in turns
        ],
    }
    lines = [
        f"[dim]{turn.at:%Y-%m-%d %H:%M}[/dim] "
        + (
            _turn_line(agent, turn)
            if turn.speaker == Speaker.AGENT
            else f"[cyan]{escape(turn.session.person)}>[/cyan] {escape(turn.content)}"
        )
        for turn in turns
    ]
    empty = f"Nobody has talked to {escape(agent.name)} yet. [bold]arbor chat {agent.argument}[/bold]"
    show(value, as_json=as_json, text="\n".join(lines) or empty)
