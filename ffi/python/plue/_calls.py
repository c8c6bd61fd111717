"""Blocking and asynchronous calls of tools, tasks, and the dispatch of events."""

from __future__ import annotations

import asyncio
import ctypes
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet

from ._errors import ToolError
from ._native import (
    DONE,
    METADATA,
    Context,
    Handles,
    last_error,
    library,
    milliseconds,
    text,
    to_json,
)

EventCallback = Callable[[Any], object]

_HAS_BLOCKS = 1


class Blocks(dict[str, Any]):
    """A result of texts, images, audio and files: ``content`` is a list of the blocks of MCP, with bytes
    in base64. ``structuredContent``, if present, is the same result as a value; ``metadata``, if present,
    is for the program and not for a model. A dict that a tool returns is never a Blocks.
    """


class AbortSignal:
    """Stops the calls that carry it, from any thread. One-shot."""

    def __init__(self) -> None:
        self._pointer = library().plue_abort_signal_new()
        self._release = library().plue_abort_signal_release
        if self._pointer is None:
            raise MemoryError("Cannot make an abort signal")

    @classmethod
    def retained(cls, pointer: int) -> AbortSignal:
        signal = cls.__new__(cls)
        signal._pointer = library().plue_abort_signal_retain(pointer)
        signal._release = library().plue_abort_signal_release
        return signal

    def abort(self, reason: str | None = None) -> None:
        """Aborts the running calls and all later ones. The first reason counts."""
        library().plue_abort_signal_abort(self._pointer, text(reason, "the reason"))

    @property
    def aborted(self) -> bool:
        return bool(library().plue_abort_signal_aborted(self._pointer))

    def __del__(self) -> None:
        # Missing after an __init__() that raised.
        if getattr(self, "_pointer", None) is not None:
            self._release(self._pointer)


# The status, and the flags of the result.
_End = tuple[int, int]


class _BlockingCall:
    """A blocking call, whose thread runs the callback."""

    def __init__(self, on_event: EventCallback) -> None:
        self._on_event = on_event
        self.error: BaseException | None = None

    def event(self, event: bytes) -> None:
        if self.error is None:
            try:
                self._on_event(json.loads(event))
            except BaseException as error:
                self.error = error


class _AsyncCall:
    """A call of an asyncio task. Events of other threads are passed to the task's loop."""

    def __init__(self, on_event: EventCallback | None, signal: AbortSignal) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._news: deque[tuple[_End | None, bytes]] = deque()
        self._on_event = on_event
        self._signal = signal
        self.future: asyncio.Future[Any] = self._loop.create_future()

    def event(self, event: bytes) -> None:
        self.tell(None, event)

    def tell(self, end: _End | None, answer: bytes) -> None:
        self._news.append((end, answer))
        if threading.get_ident() == self._thread:
            self._read()
            return
        try:
            self._loop.call_soon_threadsafe(self._read)
        except RuntimeError:
            pass  # The loop is closed.

    def _read(self) -> None:
        while self._news:
            end, answer = self._news.popleft()
            if self.future.done():
                continue
            try:
                if end is not None:
                    self.future.set_result((end, answer))
                elif self._on_event is not None:
                    self._on_event(json.loads(answer))
            except BaseException as error:
                self._signal.abort("the callback for its events raised an exception")
                self.future.set_exception(error)


_open: Handles[_BlockingCall | _AsyncCall] = Handles()
_waiting = threading.local()
_watched: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


@METADATA
def _on_metadata(event: bytes, number: int) -> None:
    call = _open.get(number)
    if call is not None:
        call.event(event)


@DONE
def _on_done(status: int, answer: bytes, number: int) -> None:
    call = _open.take(number)
    if isinstance(call, _AsyncCall):
        call.tell(_end(status), answer)


_NO_METADATA = METADATA()


def _context(
    session_id: str | None,
    message_id: str | None,
    signal: AbortSignal | None,
    number: int,
    has_events: bool,
) -> Context:
    return Context(
        session_id=text(session_id, "session_id"),
        message_id=text(message_id, "message_id"),
        abort_signal=None if signal is None else signal._pointer,
        metadata_callback=_on_metadata if has_events else _NO_METADATA,
        user_data=number,
    )


def _params(params: Any) -> bytes | None:
    return None if params is None else to_json(params)


def _end(status: int) -> _End:
    """Returns the result of this thread's last call or, in a plue_done_t, of the ended call."""
    return status, library().plue_get_last_result_flags()


def _answer(end: _End, answer: bytes) -> Any:
    status, flags = end
    value = json.loads(answer)
    if status != 0:
        raise ToolError.of(value)
    return Blocks(value) if flags & _HAS_BLOCKS else value


def is_waiting() -> bool:
    """True if this thread is inside call()."""
    return getattr(_waiting, "depth", 0) > 0


def tools() -> dict[str, dict[str, Any]]:
    """The definition of each tool that this process may call, by its name.

    :raises ToolError: the runtime cannot be started
    """
    pointer = library().plue_tool_list()
    failure = json.loads(library().plue_get_last_error_json())
    answer = ctypes.string_at(pointer)
    library().plue_free_json(pointer)
    if failure:
        raise ToolError.of(failure)
    listed: dict[str, dict[str, Any]] = json.loads(answer)
    return listed


def call(
    tool: str,
    params: Any = None,
    *,
    session_id: str | None = None,
    message_id: str | None = None,
    signal: AbortSignal | None = None,
    on_event: EventCallback | None = None,
) -> Any:
    """Calls a tool, waits for its end without the GIL, and returns its result: a value, or Blocks.

    :param params: the parameters, which become JSON; ``None`` is ``{}``
    :param signal: aborts the call, from another thread
    :param on_event: is called on this thread with each event of the running tool. If it raises, it
        gets no further events, and its exception is raised when the tool has ended
    :raises ToolError: the call failed; there is a class for each code
    """
    return _wait("plue_tool_call", tool, params, session_id, message_id, signal, on_event)


def resume(
    ticket: str,
    answers: Mapping[str, Any],
    *,
    session_id: str | None = None,
    message_id: str | None = None,
    signal: AbortSignal | None = None,
    on_event: EventCallback | None = None,
) -> Any:
    """Continues a call that raised InputRequiredError, and returns its result as call() does.

    :param ticket: the ``ticket`` of that error
    :param answers: an answer by the ``key`` of each of its ``questions``, such as
        ``{"sure": {"action": "accept"}}``
    :raises ToolError: the call failed, or the ticket is no longer valid
    """
    return _wait("plue_tool_resume", ticket, answers, session_id, message_id, signal, on_event)


def start_task(
    tool: str,
    params: Any = None,
    *,
    session_id: str | None = None,
    message_id: str | None = None,
) -> dict[str, Any]:
    """Starts a task, and returns its state: ``id``, ``status`` (``working``, ``input_required``,
    ``completed``, ``failed`` or ``cancelled``) and more; at its end ``result``. The module of tools
    must export ``tasks``.
    """
    state: dict[str, Any] = _wait("plue_tool_start", tool, params, session_id, message_id)
    return state


def poll_task(task_id: str) -> dict[str, Any]:
    """Returns the state of a task.

    :raises UnknownTaskError: there is no such task
    """
    return _of_task("plue_tool_poll", task_id)


def cancel_task(task_id: str) -> dict[str, Any]:
    """Cancels a task, unless it has ended, and returns its state."""
    return _of_task("plue_tool_cancel", task_id)


def answer_task(task_id: str, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Answers the questions of a task, as resume() does, and returns its state."""
    state: dict[str, Any] = _wait("plue_tool_answer", task_id, answers)
    return state


def _of_task(function: str, task_id: str) -> dict[str, Any]:
    pointer = ctypes.c_void_p()
    status = getattr(library(), function)(text(task_id, "the task's id"), ctypes.byref(pointer))
    state: dict[str, Any] = _answer((status, 0), _take(pointer))
    return state


def _take(pointer: ctypes.c_void_p) -> bytes:
    answer = ctypes.string_at(pointer.value or 0)
    library().plue_free_json(pointer)
    return answer


def _wait(
    function: str,
    name: str,
    value: Any,
    session_id: str | None = None,
    message_id: str | None = None,
    signal: AbortSignal | None = None,
    on_event: EventCallback | None = None,
) -> Any:
    """Calls a blocking function of plue.h."""
    call = None if on_event is None else _BlockingCall(on_event)
    first, second = text(name, "the name"), _params(value)
    number = 0 if call is None else _open.keep(call)
    pointer = ctypes.c_void_p()
    _waiting.depth = getattr(_waiting, "depth", 0) + 1
    try:
        context = _context(session_id, message_id, signal, number, call is not None)
        status = getattr(library(), function)(
            first, second, ctypes.byref(context), ctypes.byref(pointer)
        )
        end = _end(status)
    finally:
        _waiting.depth -= 1
        _open.take(number)
    answer = _take(pointer)
    if call is not None and call.error is not None:
        raise call.error
    return _answer(end, answer)


async def call_async(
    tool: str,
    params: Any = None,
    *,
    session_id: str | None = None,
    message_id: str | None = None,
    on_event: EventCallback | None = None,
) -> Any:
    """Calls a tool without blocking a thread. If the task is cancelled, the call is aborted.

    :param on_event: is called in the event loop with each event of the running tool. If it
        raises, the call is aborted, and its exception is raised
    :raises ToolError: the call failed; there is a class for each code
    """
    return await _submit("plue_tool_submit", tool, params, session_id, message_id, on_event)


async def resume_async(
    ticket: str,
    answers: Mapping[str, Any],
    *,
    session_id: str | None = None,
    message_id: str | None = None,
    on_event: EventCallback | None = None,
) -> Any:
    """Continues a call like resume(), without blocking a thread."""
    function = "plue_tool_submit_resume"
    return await _submit(function, ticket, answers, session_id, message_id, on_event)


async def _submit(
    function: str,
    name: str,
    value: Any,
    session_id: str | None,
    message_id: str | None,
    on_event: EventCallback | None,
) -> Any:
    """Calls a function of plue.h that returns before the call ends."""
    watch(asyncio.get_running_loop())
    signal = AbortSignal()
    call = _AsyncCall(on_event, signal)
    first, second = text(name, "the name"), _params(value)
    context = _context(session_id, message_id, signal, 0, on_event is not None)
    number = _open.keep(call)
    context.user_data = number
    submit = getattr(library(), function)
    if submit(first, second, ctypes.byref(context), _on_done, number) != 0:
        _open.take(number)
        raise last_error()
    try:
        return _answer(*await call.future)
    except asyncio.CancelledError:
        signal.abort("its task was cancelled")
        raise


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Makes an event loop dispatch the events of the library."""
    if loop in _watched:
        return
    descriptor = library().plue_events_fd()
    if descriptor < 0:
        raise last_error()
    loop.add_reader(descriptor, dispatch, 0)
    _watched.add(loop)


def dispatch(timeout: float | None = None) -> int:
    """Calls back on this thread for the events that wait: calls of this program's tools, changes of
    the list, log lines. An event loop in which call_async() or an async tool was used dispatches
    automatically. Programs without such a loop need a thread that calls this.

    :param timeout: how long to wait for an event, in seconds; ``None`` is without a limit
    :returns: the number of callbacks
    """
    longest = 0x7FFFFFFF
    timeout_ms = -1 if timeout is None else milliseconds(timeout, "timeout", 0, longest)
    count: int = library().plue_events_dispatch(timeout_ms)
    if count < 0:
        raise last_error()
    return count
