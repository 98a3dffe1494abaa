"""`arbor memory ingest`, `arbor remember` and `arbor recall`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apps.audit.models import AuditEvent
from apps.memories.models import Memory, MemoryAccess
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.memory.values import ScoreComponents
from config.cli.memory import recall as memory_views
from tests.factories.memories import ClusterMemberFactory
from tests.integration.cli.conftest import Arbor

TALK = "Nora: I planted the quince in May.\nIlja: By the south wall?\nnobody\nNora: Yes, in a boot.\n"


@pytest.fixture
def talk(tmp_path: Path) -> str:
    path = tmp_path / "quince.txt"
    path.write_text(TALK, encoding="utf-8")
    return str(path)


# --- ingest ------------------------------------------------------------------------------------------


def test_a_conversation_is_read_and_its_bad_lines_are_listed(arbor: Arbor, vega: str, talk: str) -> None:
    ran = arbor("memory", "ingest", talk, "--agent", vega)
    assert ran.code == 0
    assert "Vega read quince.txt (plain, 1 session): 3 new." in ran.out
    assert "1 line could not be read" in ran.out
    assert "expected `Speaker: text`, got 'nobody'" in ran.out


def test_a_conversation_read_again_adds_nothing(arbor: Arbor, vega: str, talk: str) -> None:
    arbor("memory", "ingest", talk, "--agent", vega)
    ran = arbor("memory", "ingest", talk, "--agent", vega)
    assert "nothing new, 3 remembered already." in ran.out
    repeated = arbor("memory", "ingest", talk, "--agent", vega, "--json").json
    assert (repeated["stored"], repeated["duplicates"], repeated["sessions"]) == (0, 3, 1)
    assert repeated["bad_lines"] == [{"line": 3, "reason": "expected `Speaker: text`, got 'nobody'"}]


def test_a_file_without_a_readable_line_fails(arbor: Arbor, vega: str, talk: str) -> None:
    ran = arbor("memory", "ingest", talk, "--agent", vega, "--format", "messages")
    assert ran.code == 1
    assert "4 lines could not be read" in ran.out


def test_a_file_that_is_no_conversation_is_named(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    path = tmp_path / "noise.txt"
    path.write_text("no conversation", encoding="utf-8")
    ran = arbor("memory", "ingest", str(path), "--agent", vega)
    assert ran.code == 1
    assert "noise.txt is no conversation" in ran.err
    assert arbor("memory", "ingest", "nowhere.txt", "--agent", vega).code == 2


def test_one_dialog_of_a_set_is_chosen(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    talk = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Nora", "text": "Hello."}],
    }
    path.write_text(
        json.dumps([{"sample_id": name, "conversation": talk} for name in ("one", "two")]), encoding="utf-8"
    )
    ran = arbor("memory", "ingest", str(path), "--agent", vega)
    assert ran.code == 1
    assert "one, two" in ran.err
    assert (
        arbor("memory", "ingest", str(path), "--agent", vega, "--sample", "two", "--json").json["stored"] == 1
    )


# --- remember ----------------------------------------------------------------------------------------


def test_a_repeated_memory_is_stored_once_and_audited_twice(arbor: Arbor, vega: str) -> None:
    ran = arbor("remember", vega, "The archive opens at nine.", "--importance", "0.9", "--json")
    assert ran.json["new"] is True
    repeated = arbor("remember", vega, "The archive opens at nine.")
    assert "Vega knew that already." in repeated.out
    with tenant_transaction(tenant_by_slug("acme").id):
        row = Memory.objects.get(source="operator")
        assert str(row.id) == ran.json["id"]
        assert (row.type, row.importance, row.expires_at) == ("semantic", 0.9, None)
        messages = AuditEvent.objects.filter(actor__startswith="cli:").values_list("message", flat=True)
        assert list(messages).count("added a memory to Vega") == 2


def test_a_memory_expires_at_a_given_time(arbor: Arbor, vega: str) -> None:
    ran = arbor("remember", vega, "The gate code is 4711.", "--expires", "2d", "--type", "episodic", "--json")
    until = datetime.fromisoformat(ran.json["expires_at"])
    assert abs(until - datetime.now(UTC) - timedelta(days=2)) < timedelta(minutes=1)
    assert "until 2099-01-02 00:00 UTC" in arbor("remember", vega, "Soon.", "--expires", "2099-01-02").out
    for invalid in ("yesterday", "2020-01-01", "0", "999999999d"):
        assert arbor("remember", vega, "Never.", "--expires", invalid).code == 2


def test_a_known_memory_shows_its_own_expiry(arbor: Arbor, vega: str) -> None:
    arbor("remember", vega, "The archive opens at nine.")
    again = arbor("remember", vega, "The archive opens at nine.", "--expires", "2d", "--json").json
    assert (again["new"], again["expires_at"]) == (False, None)


def test_a_text_can_come_from_standard_input(arbor: Arbor, vega: str) -> None:
    assert arbor("remember", vega, "-", stdin="Line one.\nLine two.\n").code == 0
    assert "Line two." in arbor("recall", vega, "line two", "-k", "1").out


def test_an_empty_memory_is_refused_with_the_reason(arbor: Arbor, vega: str) -> None:
    ran = arbor("remember", vega, "   ")
    assert ran.code == 1
    assert "a memory needs a text" in ran.err


# --- recall ------------------------------------------------------------------------------------------


def test_memories_are_shown_with_a_column_for_each_term(arbor: Arbor, vega: str, talk: str) -> None:
    arbor("memory", "ingest", talk, "--agent", vega)
    ran = arbor("recall", vega, "What did Nora plant in May?", "-k", "2")
    assert ran.code == 0
    head, first, _ = ran.out.splitlines()
    assert head.split() == ["score", *memory_views.COMPONENT_HEADS.values(), "when", "memory"]
    assert "Nora: I planted the quince in May." in first
    assert len(first.split()) >= len(head.split())


def test_the_columns_are_the_components_of_a_score() -> None:
    assert list(memory_views.COMPONENT_HEADS) == list(ScoreComponents().as_dict())


def test_a_narrow_terminal_shows_components_below_each_memory(
    arbor: Arbor, vega: str, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arbor("memory", "ingest", talk, "--agent", vega)
    monkeypatch.setattr(memory_views, "_WIDE_COLUMNS", 10_000)
    line, components = arbor("recall", vega, "quince", "-k", "1").out.splitlines()
    assert "Nora: I planted the quince in May." in line
    assert "words ." in components
    assert " + " in components


def test_all_components_are_in_json_and_no_access_is_counted(arbor: Arbor, vega: str, talk: str) -> None:
    arbor("memory", "ingest", talk, "--agent", vega)
    recalled = arbor("recall", vega, "quince", "-k", "3", "--json").json
    assert (recalled["agent"], recalled["tenant"], recalled["query"]) == ("Vega", "acme", "quince")
    for result in recalled["results"]:
        assert abs(sum(result["components"].values()) - result["score"]) < 0.001
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not MemoryAccess.objects.exists()


def test_a_recall_without_memories_names_the_next_command(arbor: Arbor, vega: str) -> None:
    with tenant_transaction(tenant_by_slug("acme").id):
        Memory.objects.all().delete()
    ran = arbor("recall", vega, "quince")
    assert ran.code == 0
    assert "arbor memory ingest FILE --agent Vega" in ran.out
    assert arbor("recall", vega, "quince", "--json").json["results"] == []


def test_an_invalid_limit_or_query_is_refused(arbor: Arbor, vega: str) -> None:
    assert arbor("recall", vega, "quince", "-k", "0").code == 2
    assert arbor("recall", vega, " ").code == 1
    assert arbor("recall", "Nobody", "quince").code == 1


def test_a_recall_is_filtered(arbor: Arbor, vega: str, talk: str) -> None:
    arbor("memory", "ingest", talk, "--agent", vega)
    arbor("memory", "add", vega, "Quinces want sun.", "--type", "semantic", "--concept", "garden")

    def contents(*options: str) -> set[str]:
        recalled = arbor("recall", vega, "quince", "-k", "50", "--json", *options).json
        return {memory["content"] for memory in recalled["results"]}

    assert contents("--concept", "garden") == {"Quinces want sun."}
    with tenant_transaction(tenant_by_slug("acme").id):
        memory = Memory.objects.get(content="Quinces want sun.")
        cluster = ClusterMemberFactory(
            memory=memory, cluster__agent=memory.agent, cluster__name="Orchard"
        ).cluster
    assert contents("--cluster", "orchard") == contents("--cluster", str(cluster.id)) == {"Quinces want sun."}
    assert len(contents("--type", "episodic")) == 3
    (episode,) = arbor("memory", "episodes", vega, "--json").json["episodes"]
    assert contents("--episode", episode["id"]) == contents("--type", "episodic")
    assert contents("--until", "2000-01-01") == contents("--session", "nowhere") == set()
    assert "Quinces want sun." not in contents("--min-trust", "0.9")
    assert "nothing of that kind" in arbor("recall", vega, "quince", "--session", "nowhere").out
    for options, code in (
        (("--min-trust", "7"), 2),
        (("--since", "2026-01-02", "--until", "2026-01-01"), 1),
        (("--concept", "astronomy"), 1),
        (("--cluster", "astronomy"), 1),
        (("--episodes", "--type", "semantic"), 2),
    ):
        assert arbor("recall", vega, "quince", *options).code == code, options


def test_text_in_brackets_is_shown_as_it_is(arbor: Arbor, vega: str) -> None:
    arbor("remember", vega, "[bold]not markup[/bold] [/]")
    assert "[bold]not markup[/bold] [/]" in arbor("recall", vega, "markup", "-k", "1").out


# --- recall --episodes -------------------------------------------------------------------------------


@pytest.fixture
def vega_with_talks(arbor: Arbor, vega: str, tmp_path: Path) -> str:
    """Return the name of an agent that remembers two talks."""
    for name, texts in {
        "garden": ("Nora planted a quince.", "It blooms."),
        "boat": ("The boat leaks.",),
    }.items():
        talk = tmp_path / f"{name}.jsonl"
        talk.write_text("".join(json.dumps({"role": "user", "content": text}) + "\n" for text in texts))
        assert arbor("memory", "ingest", str(talk), "--agent", vega).code == 0
    return vega


def test_the_episode_that_a_query_is_about_comes_first(arbor: Arbor, vega_with_talks: str) -> None:
    recalled = arbor("recall", vega_with_talks, "the quince that Nora planted", "--episodes", "--json").json
    best = recalled["episodes"][0]
    assert "garden" in best["session"]
    assert best["memories"] == 2
    assert best["score"] == pytest.approx(sum(best["components"].values()), abs=0.001)
    shown = arbor("recall", vega_with_talks, "quince", "--episodes", "-k", "1").out
    assert "not summarized yet" in shown
    assert "words" in shown


def test_an_agent_without_episodes_says_so(arbor: Arbor, one_tenant: str) -> None:
    assert arbor("agent", "create", "Altair", "--template", "Scout").code == 0
    ran = arbor("recall", "Altair", "quince", "--episodes")
    assert (ran.code, "has no episode yet" in ran.out) == (0, True)
    assert arbor("recall", "Altair", " ", "--episodes").code == 1
