"""The panel of `arbor up`: addresses, account and model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

#: The handle of the rule policy that stands in when no model is configured.
REFLEX = "reflex"


@dataclass(frozen=True, kw_only=True)
class PanelSummary:
    """The contents of the panel."""

    web_url: str
    flower_url: str
    operator: str
    #: Shown once, when the account was made; None afterwards.
    password: str | None
    password_file: Path
    model: str
    agents: int
    tenants: int
    ready_in_s: float


def panel(summary: PanelSummary) -> Panel:
    """Return the closing panel."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column()
    rows.add_row("console", Text(summary.web_url, style="bold underline"))
    rows.add_row("flower", Text(summary.flower_url, style="underline"))
    rows.add_row("operator", Text(summary.operator, style="bold"))
    if summary.password is None:
        rows.add_row("password", f"shown at the first start; kept in {summary.password_file}")
    else:
        rows.add_row("password", Text.assemble((summary.password, "bold green"), "  (shown only now)"))
    rows.add_row("model", _model(summary.model))
    rows.add_row("agents", f"{summary.agents} of {summary.tenants} tenants")
    hint = Text("Ctrl-C stops everything; the next `make up` goes on where this one ended.", style="dim")
    return Panel(
        Group(rows, Text(), hint),
        title=f"Arbor runs (ready in {summary.ready_in_s:.1f} s)",
        border_style="green",
        expand=False,
    )


def _model(handle: str) -> Text:
    if handle.partition("/")[0] != REFLEX:
        return Text(handle)
    return Text.assemble(
        ("none: agents act by the reflex policy (fixed rules, no language model). ", "yellow"),
        "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST for one.",
    )
