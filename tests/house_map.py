"""The README's map of the house: one line per module, taken from its docstring. `python -m tests.house_map` writes it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- map -->", "<!-- /map -->"
HOUSES = ("arbor", "apps", "workers", "config", "bench")


def modules() -> list[Path]:
    """Return the modules that carry code, house by house, in the order of their paths."""
    return [
        path.relative_to(ROOT)
        for house in HOUSES
        for path in sorted((ROOT / house).rglob("*.py"))
        if "migrations" not in path.parts and path.name != "__init__.py" and path.stat().st_size
    ]


def purpose(module: Path) -> str:
    """Return the first line of a module's docstring; empty if it has none."""
    docstring = ast.get_docstring(ast.parse((ROOT / module).read_text(encoding="utf-8"))) or ""
    return docstring.splitlines()[0].rstrip() if docstring else ""


def render() -> str:
    """Return the map: a list for each folder."""
    lines: list[str] = []
    folder = None
    for module in modules():
        if module.parent != folder:
            folder = module.parent
            lines += ["", f"**`{folder}/`**", ""]
        lines.append(f"- `{module.name}`: {purpose(module)}")
    return "\n".join(lines).strip()


def main() -> None:
    """Write the map into the README."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n{render()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
