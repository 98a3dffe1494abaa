"""Texts of templates, and changes of them."""

from __future__ import annotations

import pytest

from arbor.agents.template import parse_template
from arbor.errors import TemplateInvalid

ACTIONS = frozenset({"recall", "remember", "reflect", "rest"})
FULL = """\
---
name: Harbour
version: "1.2"
source: user
trust_tier: established
metadata:
  provider: ollama
  model: gemma3
  written_by: the harbour office
character:
  name: Ada
  description: Keeps the tide tables.
  role: harbour clerk
  tone: dry
  style: Short sentences.
  traits:
    - {name: patient, intensity: 0.9}
  quirks:
    - Counts gulls.
  knowledge:
    - category: tides
      content: Spring tides follow the full moon.
values:
  - punctuality
initial_interests:
  - the moon
initial_thoughts:
  - The tide is out.
initial_goals:
  - type: maintain
    description: Keep the tables true.
    priority: 80
  - type: explore
    title: Learn the estuary
    description: Find where the sand moves.
required_capabilities:
  - resource: arbor://fs/read/
    description: Read the tables.
    constraints: {rate_limit: 10}
relationship_style:
  approach: Waits to be asked.
  communication: Plain.
  conflict: Shows the table.
  growth: Slowly.
genome:
  role: LIBRARIAN
  traits: {risk_tolerance: 0.4, collaboration: 0.7, depth_vs_breadth: 0.5, quality_vs_speed: 0.3}
actions: [recall, rest]
heartbeat_interval_s: 900
---

## Description

Tends the harbour's tables.

## Nature

A tidy mind.

## Background

Grew up on a lightship.

## Domain Context

The north harbour.

## Instructions

- Check the date
  first.
- Say when a table is old.

## Pipeline

```dot
digraph beat { start -> done }
```
"""
MINIMAL = """\
---
name: Small
version: "1"
character: {name: Small}
actions: [rest]
---
"""


def faults_in(text: str) -> tuple[str, ...]:
    with pytest.raises(TemplateInvalid) as caught:
        parse_template(text, known_actions=ACTIONS)
    for fault in caught.value.faults:
        assert fault in str(caught.value)
    return tuple(caught.value.faults)


def with_change(old: str, new: str, *, within: str = FULL) -> str:
    assert old in within
    return within.replace(old, new, 1)
