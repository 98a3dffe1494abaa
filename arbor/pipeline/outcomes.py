"""Outcomes of nodes and runs."""

from __future__ import annotations

from enum import StrEnum


class NodeOutcome(StrEnum):
    """The outcomes of a node or a run."""

    #: Everything was done.
    SUCCESS = "success"
    #: Only an edge for `outcome=failure` or a retry target leads on.
    FAILURE = "failure"
    #: An edge for `outcome=retry` or a retry target leads on.
    RETRY = "retry"
    #: A part was done; leads on like success.
    PARTIAL = "partial"
    #: Nothing to do: only of a run, at an exit with this outcome.
    SKIPPED = "skipped"


#: Outcomes of a node.
NODE_OUTCOMES = (NodeOutcome.SUCCESS, NodeOutcome.FAILURE, NodeOutcome.RETRY, NodeOutcome.PARTIAL)
#: Outcomes of an exit.
EXIT_OUTCOMES = (NodeOutcome.SUCCESS, NodeOutcome.FAILURE, NodeOutcome.SKIPPED)
