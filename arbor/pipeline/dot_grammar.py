"""The grammar of DOT, by pydot. Loading this module takes 0.2 s and 15 MB."""

from __future__ import annotations

from threading import Lock
from typing import Any

from pydot.dot_parser import GraphParser
from pyparsing import ParseBaseException, ParserElement

__all__ = ["ParseBaseException", "parse"]

# Without this cache, parsing is exponential in nested braces.
ParserElement.enable_packrat()
# pyparsing has module state: two threads must not parse at once.
_parser = Lock()


def parse(text: str) -> list[Any]:
    """Return the graphs of a DOT text, as pydot's. Raises ParseBaseException, and RecursionError for deeply nested blocks."""
    with _parser:
        return list(GraphParser.parser.parse_string(text, parse_all=True))
