"""`arbor chat` and the commands about minds, thoughts, code and preferences, without a running fleet."""

from __future__ import annotations

import pytest

from apps.heartbeats.services.calls import calls
from arbor.errors import ModelUnavailable
from arbor.models.ports import ScriptedModel, ScriptedStream
from tests.integration.cli.conftest import Arbor
from tests.support.chat import streamed


def test_one_message_is_answered_and_remembered(arbor: Arbor, active_vega: str) -> None:
    empty = arbor("chat", active_vega, "--history")
    assert "Nobody has talked to Vega yet" in empty.out

    ran = arbor("chat", active_vega, "--message", "Remember this: the gate code is 4711.", "--json")

    assert ran.code == 0
    assert ran.json["content"].startswith("No language model is in use here")
    assert (ran.json["model"], ran.json["ended"], ran.json["heartbeat_follows"]) == (
        "reflex/policy",
        True,
        True,
    )
    turns = arbor("chat", active_vega, "--history", "--json").json["turns"]
    assert [turn["speaker"] for turn in turns] == ["user", "agent"]
    assert "the gate code is 4711" in arbor("recall", active_vega, "gate code").out
    assert "no answer" not in arbor("chat", active_vega, "--history").out


def test_a_conversation_ends_with_the_input_and_says_what_follows(arbor: Arbor, active_vega: str) -> None:
    talked = arbor("chat", active_vega, stdin="Hello\n\nHow is the river?\n")

    assert talked.code == 0
    assert talked.out.count("Vega>") == 2
    assert "the conversation is over" in talked.err
    assert "no heartbeat follows" in talked.err


def test_input_that_is_no_text_ends_a_conversation_with_a_reason(arbor: Arbor, active_vega: str) -> None:
    talked = arbor("chat", active_vega, stdin=b"\xff\xfe\n")
    assert (talked.code, "standard input must be text in UTF-8" in talked.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("chat", "Vega", "--json"), 2, "--json needs --message or --history"),
        (("chat", "Vega", "--message", " "), 1, "a message has 1 to 8,000 characters, this one is empty\n"),
        (("chat", "Vega", "--history", "--message", "hi"), 2, "give --message or --history, not both"),
        (("chat", "Nobody", "--message", "hi"), 1, "there is no agent"),
        (("self", "preference", "set", "Vega", "", "short"), 1, "a preference's key is"),
        (("self", "preference", "remove", "Vega", "tone"), 1, "has no preference"),
        (("memory", "code", "show", "Vega", "0c5512aa"), 1, "'0c5512aa': give an id"),
        (("memory", "thoughts", "Vega", "-n", "51"), 2, "51"),
    ],
)
def test_an_invalid_command_explains_its_error(
    arbor: Arbor, active_vega: str, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    ran = arbor(*arguments)

    assert ran.code == code
    assert reason in ran.err


def test_preferences_are_set_listed_and_removed(arbor: Arbor, active_vega: str) -> None:
    assert "prefers nothing yet" in arbor("self", "preference", "list", active_vega).out
    assert arbor("self", "preference", "set", active_vega, "Tone", "short and dry").code == 0
    assert arbor("self", "preference", "set", active_vega, "tone", "long").code == 0

    (line,) = arbor("self", "preference", "list", active_vega, "--json").json["preferences"]
    assert (line["key"], line["value"], line["source"]) == ("tone", "long", "operator")
    assert arbor("self", "preference", "remove", active_vega, "tone", "--json").json["removed"] is True
    assert arbor("self", "preference", "list", active_vega, "--json").json["preferences"] == []


def test_code_from_a_conversation_is_listed_and_shown(arbor: Arbor, active_vega: str) -> None:
    assert "has no such code" in arbor("memory", "code", "list", active_vega).out
    arbor("chat", active_vega, "--message", "-", stdin="The tide table:\n```python\ntide = 3\n```\n")

    (snippet,) = arbor("memory", "code", "list", active_vega, "--json").json["code"]

    assert (snippet["language"], snippet["title"], snippet["code"]) == (
        "python",
        "The tide table",
        "tide = 3",
    )
    assert arbor("memory", "code", "list", active_vega, "--about", "tide", "--json").json["code"] == [snippet]
    assert arbor("memory", "code", "list", active_vega, "--about", "whales", "--json").json["code"] == []
    assert arbor("memory", "code", "show", active_vega, snippet["id"][-8:]).out.strip() == "tide = 3"


def test_the_mind_is_shown_and_rebuilt(arbor: Arbor, active_vega: str) -> None:
    arbor("chat", active_vega, "--message", "Is the river frozen?")
    assert "said to me: Is the river frozen?" in arbor("memory", "mind", "show", active_vega).out
    assert "thought at" in arbor("memory", "mind", "show", active_vega, "--prompt").out
    assert "thought at" in arbor("memory", "mind", "show", active_vega, "--prompt", "--json").json["prompt"]
    assert arbor("memory", "mind", "show", active_vega, "--json").json["version"] == 3

    dry = arbor("memory", "mind", "rebuild", active_vega, "--dry-run", "--json").json
    assert (dry["turns"], dry["dry_run"]) == (1, True)
    assert (
        "It is rebuilt from 0 heartbeats and 1 turn:" in arbor("memory", "mind", "rebuild", active_vega).out
    )
    assert "has not thought anything yet" in arbor("memory", "thoughts", active_vega).out
    arbor("agent", "run", active_vega)
    assert arbor("memory", "thoughts", active_vega, "--json").json["thoughts"][0]["origin"] == "heartbeat"


def test_a_streamed_reply_is_printed_in_full_and_once(
    arbor: Arbor, active_vega: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = "The tide is [high] now. Come at eight!\n- Bring a rope."
    model = ScriptedModel(streamed(reply), repeat=True)
    monkeypatch.setattr(calls, "model_for", lambda _handle: model)

    single = arbor("chat", active_vega, "--message", "When may I come?")
    talked = arbor("chat", active_vega, stdin="And tomorrow?\n")

    shown = f"Vega> {reply}\n"
    assert (single.code, single.out) == (0, shown)
    assert shown in talked.out


def test_a_failed_turn_is_printed_with_its_reason(
    arbor: Arbor, active_vega: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = ScriptedStream(
        pieces=['{"thinking": "", "reply": "The tide is high now. And'], error=ModelUnavailable("cut")
    )
    monkeypatch.setattr(calls, "model_for", lambda _handle: ScriptedModel(broken))

    ran = arbor("chat", active_vega, "--message", "When may I come?")

    assert (ran.code, ran.out.splitlines()[-1]) == (1, "no answer: ModelUnavailable: cut")
