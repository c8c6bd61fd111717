"""The start and end of the tools, and the callbacks for changes and log lines."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._native import (
    LIST_CHANGED,
    LOG,
    Options,
    last_error,
    library,
    milliseconds,
    text,
    to_json,
)

UINT32_MAX = 0xFFFFFFFF


def init(
    *,
    tools: str | os.PathLike[str] | None = None,
    config: Mapping[str, Any] | None = None,
    sidecar: Sequence[str | os.PathLike[str]] | None = None,
    sidecar_cwd: str | os.PathLike[str] | None = None,
    start_timeout: float = 10,
    abort_grace: float = 1,
    call_timeout: float | None = None,
    max_bytes_in_flight: int = 256 * 1024 * 1024,
) -> None:
    """Sets the options. The first list or call starts the tools.

    :param tools: the TypeScript module that exports the registry; ``$PLUE_TOOLS``
    :param config: selects the tools of this program, and configures them
    :param sidecar: the program that runs the tools, and its arguments
    :param start_timeout: the maximum time until the tools are ready, in seconds
    :param abort_grace: how long an aborted call waits for its tool, in seconds
    :param call_timeout: the maximum time of a call, in seconds; ``None`` is without a limit
    :param max_bytes_in_flight: the maximum size of the arguments of all running calls
    :raises InvalidArgumentError: an option is bad, or the library is in use already
    """
    if max_bytes_in_flight < 1:
        raise ValueError(f"max_bytes_in_flight must be at least 1: {max_bytes_in_flight}")
    options = Options(
        struct_size=ctypes.sizeof(Options),
        tools_module=_path(tools, "tools"),
        config_json=None if config is None else to_json(config),
        sidecar_cwd=_path(sidecar_cwd, "sidecar_cwd"),
        # To libplue, 0 is the default.
        start_timeout_ms=milliseconds(start_timeout, "start_timeout", 1, UINT32_MAX),
        abort_grace_ms=milliseconds(abort_grace, "abort_grace", 1, UINT32_MAX),
        call_timeout_ms=0
        if call_timeout is None
        else milliseconds(call_timeout, "call_timeout", 1, UINT32_MAX),
        max_bytes_in_flight=max_bytes_in_flight,
    )
    if sidecar is not None:
        words = [_path(word, "sidecar") for word in sidecar]
        options.sidecar_argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    if library().plue_init_with_options(ctypes.byref(options)) != 0:
        raise last_error()
    atexit.register(library().plue_shutdown)  # One for each successful init().


def _path(path: str | os.PathLike[str] | None, what: str) -> bytes | None:
    return None if path is None else text(os.fspath(path), what)


def start() -> None:
    """Starts the tools, and waits until they are ready. Optional.

    :raises ToolError: they cannot be started
    """
    if library().plue_start() != 0:
        raise last_error()


def shutdown() -> None:
    """Fails every running call with ShutdownError, and ends the tools, as the exit of Python does.
    After n successful init() calls, only the n-th shutdown() does so. A later call starts the tools."""
    library().plue_shutdown()


def version() -> str:
    """The version of libplue."""
    found: bytes = library().plue_get_version()
    return found.decode()


_list_changed: Callable[[], object] | None = None
_log: Callable[[str], object] | None = None


@LIST_CHANGED
def _on_list_changed(_: None) -> None:
    if _list_changed is not None:
        _list_changed()


@LOG
def _on_log(line: bytes, _: None) -> None:
    if _log is not None:
        _log(line.decode())


def on_list_changed(callback: Callable[[], object] | None) -> None:
    """Sets the callback for changes of tools(), called by dispatch()."""
    global _list_changed
    _list_changed = callback
    library().plue_set_list_changed(_on_list_changed if callback else LIST_CHANGED(), None)


def on_log(callback: Callable[[str], object] | None) -> None:
    """Sets the callback for the lines that libplue would print to stderr, called by dispatch()."""
    global _log
    _log = callback
    library().plue_set_log(_on_log if callback else LOG(), None)
