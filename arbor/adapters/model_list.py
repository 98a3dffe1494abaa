"""List the models of a provider, which proves that a key is accepted and a server answers."""

from __future__ import annotations

import re
from typing import Any

import httpx

from arbor.adapters.connect import list_endpoints
from arbor.adapters.credentials import Credentials
from arbor.adapters.exchange import ApiEndpoint, HttpReply, get_json
from arbor.adapters.faults import error_for, malformed_reply_error, read_fault
from arbor.models.handles import Provider

#: The most names that are returned of a provider's list; OpenRouter lists some four hundred.
MAX_LISTED = 500
_NAME_LENGTH = 150
#: The server has no list.
_NO_LIST = {404, 405, 501}
#: Models that answer no conversation: they embed, speak, draw, listen or moderate.
_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|image|realtime|audio|transcri|sora|imagen|veo|babbage|davinci|rerank"
)


def list_models(
    provider: Provider, credentials: Credentials, *, client: httpx.Client, deadline_s: float, advice: str
) -> tuple[str, ...] | None:
    """Return the names of a provider's models that can converse, sorted, at most `MAX_LISTED`; None where it has no list.

    Raises ModelRejected for a key that is refused, ModelUnavailable and ModelTimeout where no server answers, and
    ConfigurationInvalid without a key.
    """
    proof, models = list_endpoints(provider, credentials, advice=advice)
    if proof is not None:
        _read(client, proof, deadline_s)
    answer = _read(client, models, deadline_s)
    if answer.status in _NO_LIST:
        return None
    rows = _rows(answer)
    if rows is None:
        raise malformed_reply_error(models, answer)
    names = {name for row in rows if (name := _name(row)) and not _NO_CHAT.search(name.lower())}
    return tuple(sorted(names)[:MAX_LISTED])


def _read(client: httpx.Client, endpoint: ApiEndpoint, deadline_s: float) -> HttpReply:
    answer = get_json(client, endpoint, deadline_s=deadline_s)
    if answer.status >= 300 and answer.status not in _NO_LIST:
        raise error_for(read_fault(answer), endpoint=endpoint, model="the key", headers=answer.headers)
    return answer


def _rows(answer: HttpReply) -> list[Any] | None:
    body = answer.json()
    rows = body.get("data", body.get("models")) if isinstance(body, dict) else body
    return rows if isinstance(rows, list) else None


def _name(row: Any) -> str:
    name = row.get("id") or row.get("name") if isinstance(row, dict) else row
    # Gemini writes `models/` before its names.
    name = name.removeprefix("models/") if isinstance(name, str) else ""
    return name if name.isprintable() and " " not in name and len(name) <= _NAME_LENGTH else ""
