"""Finds and loads libplue, and declares its functions for ctypes."""

from __future__ import annotations

import atexit
import ctypes
import itertools
import json
import os
import threading
from collections.abc import Mapping
from ctypes import c_char_p, c_double, c_int, c_uint32, c_void_p
from ctypes.util import find_library
from pathlib import Path
from typing import Any, Generic, TypeVar

from ._errors import InvalidArgumentError, ToolError

METADATA = ctypes.CFUNCTYPE(None, c_char_p, c_void_p)
DONE = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
EXECUTE = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_void_p)
ON_ABORT = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
DESTROY = ctypes.CFUNCTYPE(None, c_void_p)
LIST_CHANGED = ctypes.CFUNCTYPE(None, c_void_p)
LOG = ctypes.CFUNCTYPE(None, c_char_p, c_void_p)


class Context(ctypes.Structure):
    _fields_ = [
        ("session_id", c_char_p),
        ("message_id", c_char_p),
        ("abort_signal", c_void_p),
        ("metadata_callback", METADATA),
        ("user_data", c_void_p),
    ]


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("mode", c_int),
        ("tools_module", c_char_p),
        ("config_json", c_char_p),
        ("sidecar_argv", ctypes.POINTER(c_char_p)),
        ("sidecar_cwd", c_char_p),
        ("start_timeout_ms", c_uint32),
        ("abort_grace_ms", c_uint32),
        ("call_timeout_ms", c_uint32),
        ("max_bytes_in_flight", ctypes.c_size_t),
    ]


# A string to be freed is a c_void_p: ctypes would convert a c_char_p, and lose the pointer.
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "plue_tool_list": (c_void_p,),
    "plue_tool_call": (c_int, c_char_p, c_char_p, c_void_p, c_void_p),
    "plue_tool_submit": (c_int, c_char_p, c_char_p, c_void_p, DONE, c_void_p),
    "plue_tool_resume": (c_int, c_char_p, c_char_p, c_void_p, c_void_p),
    "plue_tool_submit_resume": (c_int, c_char_p, c_char_p, c_void_p, DONE, c_void_p),
    "plue_tool_start": (c_int, c_char_p, c_char_p, c_void_p, c_void_p),
    "plue_tool_poll": (c_int, c_char_p, c_void_p),
    "plue_tool_cancel": (c_int, c_char_p, c_void_p),
    "plue_tool_answer": (c_int, c_char_p, c_char_p, c_void_p, c_void_p),
    "plue_free_json": (None, c_void_p),
    "plue_abort_signal_new": (c_void_p,),
    "plue_abort_signal_retain": (c_void_p, c_void_p),
    "plue_abort_signal_release": (None, c_void_p),
    "plue_abort_signal_abort": (None, c_void_p, c_char_p),
    "plue_abort_signal_aborted": (c_int, c_void_p),
    "plue_events_fd": (c_int,),
    "plue_events_dispatch": (c_int, c_int),
    "plue_register_tool": (c_int, c_char_p, EXECUTE, DESTROY, c_void_p),
    "plue_unregister_tool": (c_int, c_char_p),
    "plue_invocation_succeed": (None, c_void_p, c_char_p),
    "plue_invocation_fail": (None, c_void_p, c_int, c_char_p),
    "plue_invocation_metadata": (None, c_void_p, c_char_p),
    "plue_invocation_output": (None, c_void_p, c_char_p),
    "plue_invocation_progress": (None, c_void_p, c_double, c_double, c_char_p),
    "plue_invocation_session_id": (c_char_p, c_void_p),
    "plue_invocation_message_id": (c_char_p, c_void_p),
    "plue_invocation_signal": (c_void_p, c_void_p),
    "plue_invocation_on_abort": (None, c_void_p, ON_ABORT, c_void_p),
    "plue_set_question": (c_int, EXECUTE, DESTROY, c_void_p),
    "plue_set_list_changed": (None, LIST_CHANGED, c_void_p),
    "plue_set_log": (None, LOG, c_void_p),
    "plue_init_with_options": (c_int, c_void_p),
    "plue_start": (c_int,),
    "plue_shutdown": (None,),
    "plue_get_last_error_json": (c_char_p,),
    "plue_get_last_result_flags": (c_int,),
    "plue_get_version": (c_char_p,),
}

_lock = threading.Lock()
_loaded: ctypes.CDLL | None = None
_path: str | None = None


def load(path: str | os.PathLike[str]) -> None:
    """Sets the libplue to load, before any other function is called. The default is
    ``$PLUE_LIBRARY``, the library in this package, or that of the system.

    :raises RuntimeError: another libplue is already loaded
    """
    global _path
    with _lock:
        if _loaded is not None and os.fspath(path) != _path:
            raise RuntimeError(f'Cannot load "{path}": libplue was loaded from "{_path}"')
        _path = os.fspath(path)


def library() -> ctypes.CDLL:
    """Returns the library, which the first call loads."""
    global _loaded, _path
    if _loaded is not None:
        return _loaded
    with _lock:
        if _loaded is None:
            _path = _path or os.environ.get("PLUE_LIBRARY") or _find()
            _loaded = _declare(_path)
            # The calls of tools end while Python can still run them.
            atexit.register(_loaded.plue_shutdown)
        return _loaded


def _find() -> str:
    folder = Path(__file__).parent / "lib"
    for name in ("libplue.so.1", "libplue.1.dylib"):
        if (folder / name).exists():
            return str(folder / name)
    found = find_library("plue")
    if found is None:
        raise ImportError(
            "Cannot find libplue: name it in $PLUE_LIBRARY, or by plue.load(), or install it"
        )
    return found


def _declare(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.plue_abi_version.restype = c_uint32
    if library.plue_abi_version() != 1:
        raise ImportError(
            f'Cannot use "{path}": its ABI is version {library.plue_abi_version()}, and 1 is wanted'
        )
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(
                f'Cannot use "{path}": it is older than this package, without {name}()'
            )
        function.restype = result
        function.argtypes = arguments
    return library


def text(value: str | None, what: str) -> bytes | None:
    """Returns the bytes of a string for C, which must not contain NUL."""
    if value is None:
        return None
    if "\0" in value:
        raise InvalidArgumentError(f"Cannot pass {what}: it has a NUL")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"Cannot pass {what}: it has a lone surrogate") from error


def milliseconds(seconds: float, what: str, least: int, most: int) -> int:
    """Returns a time in milliseconds, checked because ctypes would truncate a large number."""
    if not least <= seconds * 1000 <= most:
        raise InvalidArgumentError(
            f"Invalid {what}: it must be {least / 1000} to {most / 1000} seconds, not {seconds}"
        )
    return round(seconds * 1000)


def to_json(value: Any) -> bytes:
    """Returns standard JSON: NaN and infinity raise a ValueError."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def last_error() -> ToolError:
    """Returns the failure of this thread's last function."""
    return ToolError.of(json.loads(library().plue_get_last_error_json()))


_T = TypeVar("_T")


class Handles(Generic[_T]):
    """The objects of callbacks, by the number that C passes as ``user_data``."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._kept: dict[int, _T] = {}

    def keep(self, value: _T) -> int:
        number = next(self._numbers)
        self._kept[number] = value
        return number

    def get(self, number: int) -> _T | None:
        return self._kept.get(number)

    def take(self, number: int) -> _T | None:
        return self._kept.pop(number, None)
