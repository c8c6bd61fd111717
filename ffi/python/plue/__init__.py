"""Lists and calls the tools of a plue registry, and registers tools written in Python."""

from . import _errors
from ._calls import (
    AbortSignal,
    Blocks,
    answer_task,
    call,
    call_async,
    cancel_task,
    dispatch,
    poll_task,
    resume,
    resume_async,
    start_task,
    tools,
)
from ._errors import *
from ._lifecycle import init, on_list_changed, on_log, shutdown, start, version
from ._native import load
from ._tools import Invocation, ToolDefinition, on_question, register, unregister

__all__ = [
    "AbortSignal",
    "Blocks",
    "Invocation",
    "ToolDefinition",
    "answer_task",
    "call",
    "call_async",
    "cancel_task",
    "dispatch",
    "init",
    "load",
    "on_list_changed",
    "on_log",
    "on_question",
    "poll_task",
    "register",
    "resume",
    "resume_async",
    "shutdown",
    "start",
    "start_task",
    "tools",
    "unregister",
    "version",
]
__all__ += _errors.__all__
