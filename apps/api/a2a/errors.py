"""Errors of the protocol A2A, with codes of JSON-RPC."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from arbor import errors

_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_DOMAIN = "a2a-protocol.org"
_MAX_FAULTS = 5


class RpcCode(IntEnum):
    """The codes of errors; the name of a code is its reason in the protocol."""

    JSON_PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    TASK_NOT_FOUND = -32001
    TASK_NOT_CANCELABLE = -32002
    PUSH_NOTIFICATION_NOT_SUPPORTED = -32003
    UNSUPPORTED_OPERATION = -32004
    CONTENT_TYPE_NOT_SUPPORTED = -32005
    VERSION_NOT_SUPPORTED = -32009


#: The code of a domain error is that of its closest base class here; other errors are answered by their HTTP status.
_CODES: Mapping[type[errors.ArborError], RpcCode] = MappingProxyType(
    {
        errors.Invalid: RpcCode.INVALID_PARAMS,
        errors.NotFound: RpcCode.TASK_NOT_FOUND,
        errors.TransitionIllegal: RpcCode.UNSUPPORTED_OPERATION,
        errors.LimitReached: RpcCode.UNSUPPORTED_OPERATION,
    }
)


class RpcRefused(errors.ArborError):
    """The call is refused with a code of the protocol."""

    def __init__(self, code: RpcCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def refusal_of(error: errors.ArborError, *, cancels: bool) -> RpcRefused | None:
    """Return a domain error as an error of the protocol; None for one without a code, such as a fault of Arbor."""
    if isinstance(error, RpcRefused):
        return error
    if cancels and isinstance(error, errors.TransitionIllegal):
        return RpcRefused(RpcCode.TASK_NOT_CANCELABLE, str(error))
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), None)
    return None if code is None else RpcRefused(code, str(error))


def invalid_params(error: ValidationError) -> RpcRefused:
    """Return the faults of parameters as one error; each fault has its place."""
    faults = error.errors(include_url=False, include_input=False)[:_MAX_FAULTS]
    text = "; ".join(f"{'.'.join(['params', *map(str, fault['loc'])])}: {fault['msg']}" for fault in faults)
    return RpcRefused(RpcCode.INVALID_PARAMS, text)


def error_json(refusal: RpcRefused) -> dict[str, Any]:
    """Return an error as the protocol writes it."""
    info = {"@type": _ERROR_INFO, "reason": refusal.code.name, "domain": _DOMAIN}
    return {"code": int(refusal.code), "message": str(refusal).replace("\0", ""), "data": [info]}
