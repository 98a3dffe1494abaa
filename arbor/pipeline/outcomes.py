"""Outcomes of nodes and of whole walks."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How a node, or a whole walk, ended."""

    #: Everything that was wanted was done.
    SUCCESS = "success"
    #: It did not work; only a fail edge or a retry target leads on.
    FAILURE = "failure"
    #: It did not work this time; an edge for `outcome=retry` or a retry target leads on.
    RETRY = "retry"
    #: Some of it was done; leads on like success.
    PARTIAL = "partial"
    #: There was nothing to do: only a whole walk ends so, at an exit that says it.
    SKIPPED = "skipped"


#: How a node can end.
NODE_OUTCOMES = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.RETRY, Outcome.PARTIAL)
#: How an exit can say that the walk ended.
EXIT_OUTCOMES = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.SKIPPED)
