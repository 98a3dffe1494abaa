"""Handlers of all errors, and the comments with their reasons."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BROAD = re.compile(r"\s*except(?:\s+(?:Base)?Exception)?(?:\s+as\s+\w+)?:")
_COMMENT = re.compile(r"(?:^|\s)#\s*\S")


def handlers_without_reason(source: str) -> list[int]:
    """Return the lines of the broad handlers without a comment on, above or right below them; those that raise again need none."""
    lines = source.splitlines()
    bare = []
    for index, line in enumerate(lines):
        if _BROAD.match(line) and not any(map(_COMMENT.search, lines[max(index - 1, 0) : index + 2])):
            indent = len(line) - len(line.lstrip())
            body = []
            for following in lines[index + 1 :]:
                if following.strip() and len(following) - len(following.lstrip()) <= indent:
                    break
                body.append(following.strip())
            if "raise" not in body:
                bare.append(index + 1)
    return bare


def test_handlers_of_all_errors_say_why() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("apps", "arbor", "config", "workers")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in handlers_without_reason(path.read_text(encoding="utf-8"))
    ]
    assert bare == []


def test_a_handler_without_a_reason_is_found() -> None:
    assert handlers_without_reason("try:\n    f()\nexcept Exception:\n    pass\n") == [3]
    assert handlers_without_reason("try:\n    f()\nexcept Exception:\n    # It may fail.\n    pass\n") == []
    assert handlers_without_reason("try:\n    f()\nexcept BaseException:\n    g()\n    raise\n") == []
