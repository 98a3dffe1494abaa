"""Mappings, templates, events and keys of hooks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.contacts.github_events import github_message
from arbor.contacts.hook_messages import read_message
from arbor.contacts.hook_templates import MAX_PLACEHOLDERS, TEMPLATE_LENGTH, TextTemplate
from arbor.contacts.hooks import (
    HookKind,
    HookMapping,
    hook_key,
    parse_hook_key,
    read_importance,
    valid_events,
    wants_event,
)
from arbor.errors import Invalid, SignatureRefused
from tests.support.hook_requests import GITHUB_BODIES

BODY: dict[str, Any] = {
    "a": {"b": "x", "n": 3, "yes": True, "no": None, "list": [{"c": "first"}, "second"]},
    "a.b": "dotted",
    "~/": "escaped",
    "": "empty",
    "0": "digit",
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{a.b}, {/a/b}", "x, x"),
        ("{ a.b }", "x"),
        ("{{a}} {a.b}", "{a} x"),
        ("{a.n} {a.yes} [{a.no}]", "3 true []"),
        ("{a.list.0.c} {/a/list/1}", "first second"),
        ("{a.list}", '[{"c": "first"}, "second"]'),
        ("{/a.b} {/~0~1} {/}", "dotted escaped empty"),
        ("{0}", "digit"),
        ("{a.list.2}{a.list.0000000001}{a.list.-1}{a.b.0}{nothing}", ""),
        # Python's attributes and formats are nothing but keys that the body lacks.
        ("{a.__class__}{a.b:>9}{a[b]}{a!r}", ""),
        ("", ""),
    ],
)
def test_placeholders_are_paths_of_the_body(template: str, text: str) -> None:
    assert TextTemplate.parse(template, name="x").fill(BODY).text == text


def test_the_whole_body_is_json() -> None:
    assert TextTemplate.parse("{}", name="x").fill({"é": 1}).text == '{"é": 1}'
    assert TextTemplate.parse("{}", name="x").fill("text").text == "text"


def test_missing_paths_are_named() -> None:
    assert TextTemplate.parse("{a.x} {a.b} {/y/0}", name="x").fill(BODY).missing == ("a.x", "y.0")


@pytest.mark.parametrize(
    "template",
    [
        *("{", "}", "{a", "a}", "{a..b}", "{a/b..c}", "{.a}", "{a.}", "{{a}", "\0"),
        "x" * (TEMPLATE_LENGTH + 1),
        "{a}" * (MAX_PLACEHOLDERS + 1),
        "{" + "a." * 20 + "a}",
    ],
)
def test_wrong_templates_are_refused(template: str) -> None:
    with pytest.raises(Invalid, match="the title"):
        TextTemplate.parse(template, name="the title")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@given(template=st.text(alphabet="{}ab./0~ ", max_size=30), body=JSON)
def test_any_template_and_body_give_a_text_or_a_reason(template: str, body: Any) -> None:
    try:
        message = HookMapping.of({"title": template, "importance": template}).message(body)
    except Invalid:
        return
    assert 0 <= message.importance <= 1
    assert len(message.content) <= 6_400


@pytest.mark.parametrize("event", sorted(GITHUB_BODIES))
@given(data=st.data())
def test_any_body_of_github_gives_a_message(event: str, data: st.DataObject) -> None:
    body = {**GITHUB_BODIES[event]}
    for key in data.draw(st.lists(st.sampled_from(sorted(body)), max_size=3)):
        body[key] = data.draw(JSON)
    assert github_message(event, body).event.startswith(event)


@pytest.mark.parametrize(
    ("event", "title", "sender"),
    [
        ("push", "octocat pushed 2 commits to main in octo-org/river", "octocat"),
        ("ping", "GitHub is connected for octo-org/river", "octocat"),
        ("pull_request", "Pull request merged in octo-org/river: #8 Seal the gate", "octocat"),
        ("pull_request_review", "hubot asked for changes in #8 Seal the gate in octo-org/river", "octocat"),
        ("issue_comment", "Comment created in octo-org/river on #7 The weir leaks", "octocat"),
        ("release", "Release published in octo-org/river: v1.2.0 Thaw", "octocat"),
        ("workflow_run", "Workflow CI of octo-org/river on main: failure", "octocat"),
    ],
)
def test_events_of_github_have_titles(event: str, title: str, sender: str) -> None:
    message = github_message(event, GITHUB_BODIES[event])
    assert (message.title, message.sender) == (title, sender)


def test_a_push_names_its_commits() -> None:
    body = GITHUB_BODIES["push"]
    assert github_message("push", body).text == "- Measure the weir Twice a day. (Ann)\n- Log levels (Bob)"
    many = github_message("push", {**body, "commits": body["commits"] * 10, "forced": True})
    assert many.title.startswith("octocat force-pushed 20 commits to main")
    assert many.text.endswith("and 10 more")
    assert "deleted main" in github_message("push", {**body, "commits": [], "deleted": True}).title
    tag = {**body, "ref": "refs/tags/v1.2.0", "commits": [], "created": True}
    assert github_message("push", tag).title == "octocat created v1.2.0 in octo-org/river"


@pytest.mark.parametrize(
    ("action", "verb"), [("edited", "edited a review of"), ("dismissed", "had a review dismissed in")]
)
def test_a_changed_review_is_no_new_one(action: str, verb: str) -> None:
    body = {**GITHUB_BODIES["pull_request_review"], "action": action}
    assert github_message("pull_request_review", body).title.startswith(f"hubot {verb} #8")


def test_an_unknown_event_gives_a_line() -> None:
    body = {"action": "created", "repository": {"full_name": "o/r"}}
    title = "GitHub: code scanning alert created in o/r"
    assert github_message("code_scanning_alert", body).title == title
    assert github_message("code_scanning_alert", {**body, "organization": {"login": "o"}}).title == title
    member = {"action": "member_added", "organization": {"login": "o"}}
    assert github_message("organization", member).title == "GitHub: organization member added in o"
    with_event = {**body, "event": "push"}
    assert github_message("deployment_protection_rule", with_event).title.startswith(
        "GitHub: deployment protection rule"
    )
    with pytest.raises(Invalid, match="JSON object"):
        github_message("push", [])


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({}, b"{}", "x-github-event, by 1 to 100 printable characters, got ''"),
        ({"x-github-event": "push\x01"}, b"{}", r"printable characters, got 'push\\x01'"),
        ({"x-github-event": "push", "content-type": "application/x-www-form-urlencoded"}, b"x=1", "payload"),
        ({"x-github-event": "push", "content-type": "application/x-www-form-urlencoded"}, b"\xff", "form"),
        ({"x-github-event": "push"}, b"payload=%7B%7D", "not JSON"),
    ],
)
def test_wrong_requests_of_github_are_refused(headers: dict[str, str], body: bytes, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        read_message(kind=HookKind.GITHUB, mapping=HookMapping(), headers=headers, body=body)


def test_importance_is_a_number_or_a_word() -> None:
    assert [read_importance(text)[0] for text in ("", "0.9", "CRITICAL", " low ", "1")] == [
        0.5,
        0.9,
        1,
        0.25,
        1,
    ]
    for wrong in ("2", "-1", "nan", "loud", "x" * 1_000):
        importance, fault = read_importance(wrong)
        assert importance == 0.5
        assert "0 to 1" in fault
        assert len(fault) < 200


def test_events_are_wanted_by_name_or_its_beginning() -> None:
    assert wants_event([], "push")
    assert wants_event(["issues"], "issues.opened")
    assert wants_event(["issues.opened"], "issues.opened")
    assert not wants_event(["issues.opened"], "issues.closed")
    assert not wants_event(["issue"], "issues.opened")
    assert valid_events([" push "]) == ["push"]
    for wrong in ([""], ["x" * 101], ["a"] * 51, ["a\nb"]):
        with pytest.raises(Invalid):
            valid_events(wrong)


def test_a_key_names_tenant_and_hook() -> None:
    tenant, hook = UUID(int=1), UUID(int=2)
    key = hook_key(tenant, hook)
    assert parse_hook_key(key) == (tenant, hook)
    for wrong in ("", "x", key[:-1], key + "A", key[:-1] + "é", "!" * 43):
        with pytest.raises(SignatureRefused):
            parse_hook_key(wrong)


def test_a_wrong_mapping_is_refused() -> None:
    for wrong in ({"color": "x"}, {"title": 1}, {"title": "{"}):
        with pytest.raises(Invalid):
            HookMapping.of(wrong)
