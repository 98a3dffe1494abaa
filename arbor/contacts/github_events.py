"""Messages for agents from GitHub's webhooks (https://docs.github.com/en/webhooks/webhook-events-and-payloads)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from arbor.contacts.hook_templates import TextTemplate, look_up, value_text
from arbor.contacts.hooks import (
    EVENT_LENGTH,
    LINK_LENGTH,
    SENDER_LENGTH,
    TEXT_LENGTH,
    TITLE_LENGTH,
    USUAL_IMPORTANCE,
    HookMessage,
)
from arbor.errors import Invalid
from arbor.quotations import clip, clip_line, counted

#: Commits of a push that its text names.
_COMMITS_SHOWN = 10
_COMMIT_LENGTH = 200
_LOW, _HIGH = 0.3, 0.8
#: Conclusions of a workflow that somebody should look at.
_BROKEN = frozenset({"failure", "timed_out", "startup_failure", "action_required"})


@dataclass(frozen=True, kw_only=True)
class _EventText:
    """The texts of an event: templates, and rules for what a template cannot express."""

    title: str
    text: str = ""
    link: str = ""
    importance: Callable[[Any], float] = lambda _body: USUAL_IMPORTANCE
    #: Replaces the text.
    text_of: Callable[[Any], str] | None = None
    #: Replaces the word for the action in the title.
    verb_of: Callable[[Any], str] | None = None


def github_message(event: str, body: Any) -> HookMessage:
    """Turn the body of an event into a message; an event without texts in the table gives one general line.

    Raises Invalid for a body that is no object.
    """
    if not isinstance(body, dict):
        raise Invalid("a delivery of GitHub has a JSON object as its body")
    texts = _TEXTS.get(event, _GENERAL)
    action = pick(body, "action")
    verb = texts.verb_of(body) if texts.verb_of is not None else action.replace("_", " ")
    # A repository of an organization is sent with both.
    place = pick(body, "repository.full_name") or pick(body, "organization.login")
    # Some bodies have a field "event" of their own, such as that of deployment_protection_rule.
    known = {**body, "event": event.replace("_", " "), "verb": verb, "place": place}
    title = _fill(texts.title, known)
    text = texts.text_of(body) if texts.text_of is not None else _fill(texts.text, known)
    return HookMessage(
        event=clip_line(f"{event}.{action}" if action else event, EVENT_LENGTH),
        title=clip_line(title, TITLE_LENGTH),
        text=clip(text.strip(), TEXT_LENGTH),
        sender=clip_line(pick(body, "sender.login") or pick(body, "pusher.name"), SENDER_LENGTH),
        importance=texts.importance(body),
        link=clip_line(_fill(texts.link, body), LINK_LENGTH),
    )


def pick(body: Any, path: str) -> str:
    """Return a value of a body as text; nothing where it is missing."""
    return value_text(look_up(body, path.split("."))[1])


def _fill(template: str, body: Any) -> str:
    return TextTemplate.parse(template, name="the text").fill(body).text


def _push_text(body: Any) -> str:
    _, commits = look_up(body, ("commits",))
    if not isinstance(commits, list) or not commits:
        return ""
    lines = [
        f"- {clip_line(pick(commit, 'message'), _COMMIT_LENGTH)} ({pick(commit, 'author.name')})"
        for commit in commits[:_COMMITS_SHOWN]
    ]
    left = len(commits) - _COMMITS_SHOWN
    return "\n".join([*lines, *([f"and {left} more"] if left > 0 else [])])


def _push_verb(body: Any) -> str:
    _, commits = look_up(body, ("commits",))
    number = len(commits) if isinstance(commits, list) else 0
    ref = pick(body, "ref").removeprefix("refs/heads/").removeprefix("refs/tags/")
    if look_up(body, ("deleted",))[1] is True:
        return f"deleted {ref}"
    if not number and look_up(body, ("created",))[1] is True:
        # A tag, or a branch at a commit that GitHub had already.
        return f"created {ref}"
    forced = "force-pushed" if look_up(body, ("forced",))[1] is True else "pushed"
    return f"{forced} {counted(number, 'commit')} to {ref}"


def _pull_request_verb(body: Any) -> str:
    if pick(body, "action") == "closed" and look_up(body, ("pull_request", "merged"))[1] is True:
        return "merged"
    return pick(body, "action").replace("_", " ")


def _review_verb(body: Any) -> str:
    # The state of an edited or dismissed review says nothing about this event.
    by_action = {"edited": "edited a review of", "dismissed": "had a review dismissed in"}
    by_state = {
        "approved": "approved",
        "changes_requested": "asked for changes in",
        "commented": "commented on",
    }
    return by_action.get(pick(body, "action")) or by_state.get(pick(body, "review.state").lower(), "reviewed")


def _run_verb(body: Any) -> str:
    return (pick(body, "workflow_run.conclusion") or pick(body, "action")).replace("_", " ")


_TEXTS: Mapping[str, _EventText] = MappingProxyType(
    {
        "ping": _EventText(
            title="GitHub is connected for {place}",
            text="{zen}",
            importance=lambda _body: _LOW,
        ),
        "push": _EventText(
            title="{pusher.name} {verb} in {repository.full_name}",
            text_of=_push_text,
            verb_of=_push_verb,
            link="{compare}",
        ),
        "issues": _EventText(
            title="Issue {verb} in {repository.full_name}: #{issue.number} {issue.title}",
            text="{issue.body}",
            link="{issue.html_url}",
        ),
        "issue_comment": _EventText(
            title="Comment {verb} in {repository.full_name} on #{issue.number} {issue.title}",
            text="{comment.body}",
            link="{comment.html_url}",
        ),
        "pull_request": _EventText(
            title="Pull request {verb} in {repository.full_name}: #{pull_request.number} {pull_request.title}",
            text="{pull_request.body}",
            link="{pull_request.html_url}",
            verb_of=_pull_request_verb,
        ),
        "pull_request_review": _EventText(
            title="{review.user.login} {verb} #{pull_request.number} {pull_request.title} in {repository.full_name}",
            text="{review.body}",
            link="{review.html_url}",
            verb_of=_review_verb,
        ),
        "release": _EventText(
            title="Release {verb} in {repository.full_name}: {release.tag_name} {release.name}",
            text="{release.body}",
            link="{release.html_url}",
        ),
        "workflow_run": _EventText(
            title="Workflow {workflow_run.name} of {repository.full_name} on {workflow_run.head_branch}: {verb}",
            text="{workflow_run.display_title}",
            link="{workflow_run.html_url}",
            verb_of=_run_verb,
            importance=lambda body: (
                _HIGH if pick(body, "workflow_run.conclusion") in _BROKEN else USUAL_IMPORTANCE
            ),
        ),
    }
)
#: Events that the table does not have.
_GENERAL = _EventText(title="GitHub: {event} {verb} in {place}")
