"""What the stub model thinks: a heartbeat's reply that follows from the prompt, and from nothing else."""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def reply_to(prompt: str) -> dict[str, Any]:
    """Return a valid heartbeat reply: the same prompt gives the same one, another prompt mostly another."""
    roll = crc32(prompt.encode("utf-8", errors="replace"))
    ids = list(dict.fromkeys(_UUID.findall(prompt)))
    return {
        "thinking": f"roll {roll}",
        "actions": [
            {
                "action": "rest",
                "params": {},
                "reasoning": "",
                "goal_id": ids[0] if ids else None,
                "intent_id": None,
            }
        ],
        "memory_notes": [],
        "goal_updates": [],
        "new_goals": [],
        "concerns": [],
        "curiosity": [],
        "decompositions": [],
    }
