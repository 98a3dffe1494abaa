"""Read and check the text of a template for its editor: faults by line, and a preview of the system prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.agents.models import BuiltinTemplate, Template
from apps.agents.services.templates import read_template
from arbor.agents.character import to_system_prompt
from arbor.agents.template import TemplateSpec
from arbor.errors import NotFound, PipelineInvalid, TemplateInvalid

#: The most characters of a template's text.
TEXT_LENGTH = 200_000
#: The name of the agent in the preview.
PREVIEW_NAME = "Ada"
_LINE = re.compile(r"^line (\d+)(?:, )?")


@dataclass(frozen=True, kw_only=True)
class FaultLine:
    """A fault of a template or skill, with its line and the text there; 0 and empty for the whole file."""

    line: int
    text: str
    message: str


@dataclass(frozen=True, kw_only=True)
class TemplateEditorPage:
    """The editor: the text, and what was found in it, once it was checked."""

    text: str
    #: The tenant's template that saving replaces; empty for a new one.
    name: str
    #: The templates to start from: [(name, whether it is built in)].
    templates: Sequence[tuple[str, bool]]
    checked: bool = False
    faults: Sequence[FaultLine] = ()
    spec: TemplateSpec | None = None
    system_prompt: str = ""

    text_length = TEXT_LENGTH

    @property
    def rows(self) -> int:
        """Return the height of the text's field in lines."""
        return field_rows(self.text)


def open_editor(name: str) -> TemplateEditorPage:
    """Open a template of the tenant, a copy of a built-in one, or an outline. Raises NotFound."""
    templates = template_names()
    if not name:
        return TemplateEditorPage(text=OUTLINE, name="", templates=templates)
    wanted = name.strip().casefold()
    for model, own in ((Template, True), (BuiltinTemplate, False)):
        found = model.objects.filter(name__iexact=wanted).values_list("name", "source_text").first()
        if found is not None:
            return check_text(found[1], name=found[0] if own else "", templates=templates)
    raise NotFound(
        f"there is no template {name[:64]!r}; there is: {', '.join(known for known, _ in templates)}"
    )


def check_text(text: str, *, name: str, templates: Sequence[tuple[str, bool]] = ()) -> TemplateEditorPage:
    """Check a text, and return the editor with its faults or, for a valid one, the preview."""
    faults: Sequence[str] = ()
    spec = None
    if len(text) > TEXT_LENGTH:
        faults = [f"a template has at most {TEXT_LENGTH:,} characters, got {len(text):,}"]
    else:
        try:
            spec = read_template(text)
        except (TemplateInvalid, PipelineInvalid) as error:
            faults = error.faults or [str(error)]
    return TemplateEditorPage(
        text=text,
        name=name,
        templates=templates,
        checked=True,
        faults=[fault_line(fault, text.split("\n")) for fault in faults],
        spec=spec,
        system_prompt=_preview(spec) if spec else "",
    )


def template_names() -> list[tuple[str, bool]]:
    """Return the names of the templates that the tenant can use, and whether each is built in.

    Only names are read, because a template that another version of Arbor stored may be unreadable.
    """
    own = list(Template.objects.order_by("name").values_list("name", flat=True))
    hidden = {name.casefold() for name in own}
    builtin = BuiltinTemplate.objects.order_by("name").values_list("name", flat=True)
    return [(name, False) for name in own] + [
        (name, True) for name in builtin if name.casefold() not in hidden
    ]


def own_template_exists(name: str) -> bool:
    """Return whether the tenant has a template of that name of its own."""
    return bool(Template.objects.filter(name__iexact=name).exists())


def field_rows(text: str) -> int:
    """Return the height of a text's field in lines, 16 to 40."""
    return min(max(text.count("\n") + 2, 16), 40)


def _preview(spec: TemplateSpec) -> str:
    return to_system_prompt(spec.character, name=PREVIEW_NAME, genome=spec.genome)


def fault_line(message: str, lines: Sequence[str]) -> FaultLine:
    """Return a fault with the line of the text that it names."""
    found = _LINE.match(message)
    line = int(found[1]) if found else 0
    text = lines[line - 1].strip()[:120] if 0 < line <= len(lines) else ""
    return FaultLine(line=line, text=text, message=message)


#: The text of a new template.
OUTLINE = """\
---
name: MyAgent
version: "1.0"
trust_tier: probationary
description: An observer of one subject.
character:
  name: Ada
  description: You observe one subject with patience, and write short, exact sentences.
  tone: friendly and precise
  traits:
    - {name: curious, intensity: 0.8}
values:
  - accuracy before speed
initial_goals:
  - type: achieve
    title: Learn what matters about the subject
    description: Ask the people who care about it, and remember their answers.
actions: [recall, remember, reflect, rest]
---
"""
