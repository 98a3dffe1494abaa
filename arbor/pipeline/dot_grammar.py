"""The grammar of DOT, by pydot. Loading this module takes 0.2 s and 15 MB."""

from __future__ import annotations

from threading import Lock
from typing import Any

from pydot.dot_parser import GraphParser
from pyparsing import ParseBaseException, ParseFatalException, ParserElement

__all__ = ["ParseBaseException", "parse"]

# Without this cache, parsing is exponential in nested braces.
ParserElement.enable_packrat()
# pyparsing has module state: two threads must not parse at once.
_parser = Lock()

#: The most statements of a text, far more than a pipeline has: pydot needs time in the square of some.
MAX_STATEMENTS = 2_000
# Statements by position, because a statement may be parsed more than once.
_statements: set[int] = set()


def _count_statement(text: str, position: int, _: Any) -> None:
    _statements.add(position)
    if len(_statements) > MAX_STATEMENTS:
        raise ParseFatalException(text, position, f"a pipeline has at most {MAX_STATEMENTS:,} statements")


GraphParser.stmt.add_parse_action(_count_statement)


def parse(text: str) -> list[Any]:
    """Return the graphs of a DOT text, as pydot's. Raises ParseBaseException, and RecursionError for deeply nested blocks."""
    with _parser:
        _statements.clear()
        return list(GraphParser.parser.parse_string(text, parse_all=True))
