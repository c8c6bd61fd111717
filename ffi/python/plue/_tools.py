"""Tools written in Python, in the same registry as those in TypeScript."""

from __future__ import annotations

import _thread
import asyncio
import inspect
import json
import threading
from collections.abc import Callable
from typing import Any, TypedDict

from ._calls import AbortSignal, is_waiting, watch
from ._errors import Code, ToolError
from ._native import DESTROY, EXECUTE, ON_ABORT, Handles, last_error, library, text, to_json


class _Named(TypedDict):
    name: str
    description: str


class ToolDefinition(_Named, total=False):
    """The definition of a tool. ``parameters`` and ``returns`` are JSON Schemas."""

    namespace: str
    title: str
    version: str
    parameters: dict[str, Any]
    returns: dict[str, Any]
    category: str
    risk: str
    tags: list[str]
    annotations: dict[str, Any]
    examples: list[Any]
    deprecated: bool | str
    requiresApproval: bool
    timeoutMs: int
    idempotent: bool
    aliases: list[str]
    roles: list[str]
    scopes: list[str]
    #: True if every result is blocks, in the form of ``Blocks``: ``{"content": [...]}``.
    blocks: bool


class Invocation:
    """A call of a tool in Python. Events after its end are dropped."""

    def __init__(self, pointer: int) -> None:
        native = library()
        self._pointer: int | None = pointer
        self._lock = threading.Lock()
        self._task: asyncio.Task[None] | None = None
        #: The ids of the call, or ``None``.
        self.session_id: str | None = _decode(native.plue_invocation_session_id(pointer))
        self.message_id: str | None = _decode(native.plue_invocation_message_id(pointer))
        #: The signal of the call. Pass it to the calls that the tool makes.
        self.signal: AbortSignal = AbortSignal.retained(native.plue_invocation_signal(pointer))

    @property
    def aborted(self) -> bool:
        """True if the call was aborted. A long function checks it repeatedly."""
        return self.signal.aborted

    def metadata(self, value: Any) -> None:
        """Sends metadata to the caller."""
        self._say(library().plue_invocation_metadata, to_json(value))

    def output(self, value: Any) -> None:
        """Sends a part of the output before the end."""
        self._say(library().plue_invocation_output, to_json(value))

    def progress(self, done: float, total: float = 0, message: str | None = None) -> None:
        """Reports progress; ``total`` 0 is unknown."""
        self._say(library().plue_invocation_progress, done, total, text(message, "the message"))

    def _say(self, function: Callable[..., None], *arguments: Any) -> None:
        with self._lock:
            if self._pointer is not None:
                function(self._pointer, *arguments)

    def _end(self, function: Callable[..., None], *arguments: Any) -> None:
        with self._lock:
            pointer, self._pointer = self._pointer, None
        if pointer is not None:
            function(pointer, *arguments)

    def _succeed(self, result: Any) -> None:
        self._end(library().plue_invocation_succeed, to_json(result))

    def _fail(self, error: BaseException) -> None:
        code = Code.THREW
        if isinstance(error, ToolError):
            code = error.code
        elif isinstance(error, asyncio.CancelledError):
            code = Code.ABORTED
        message = (str(error) or type(error).__name__).replace("\0", "\ufffd")
        self._end(library().plue_invocation_fail, code, message.encode(errors="replace"))


Function = Callable[[Any, Invocation], Any]


class _Tool:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._loop: asyncio.AbstractEventLoop | None = None
        if inspect.iscoroutinefunction(function):
            try:
                self._loop = asyncio.get_running_loop()
            except RuntimeError:
                raise RuntimeError(
                    "Cannot register an async function: no event loop is running"
                ) from None
            watch(self._loop)

    def run(self, invocation: Invocation, pointer: int, params: bytes) -> None:
        if self._loop is None:
            invocation._succeed(self._function(json.loads(params), invocation))
            return
        if is_waiting() and _running_loop() is self._loop:
            raise ToolError("The event loop of this tool waits for this call: use call_async()")
        number = _running.keep(invocation)
        library().plue_invocation_on_abort(pointer, _on_abort, number)
        try:
            self._loop.call_soon_threadsafe(self._start, invocation, number, json.loads(params))
        except RuntimeError:
            _running.take(number)
            raise

    def _start(self, invocation: Invocation, number: int, params: Any) -> None:
        assert self._loop is not None
        invocation._task = self._loop.create_task(self._wait(invocation, params))
        invocation._task.add_done_callback(lambda task: _finish(invocation, number, task))
        if invocation.aborted:
            invocation._task.cancel()

    async def _wait(self, invocation: Invocation, params: Any) -> None:
        invocation._succeed(await self._function(params, invocation))


def _finish(invocation: Invocation, number: int, task: asyncio.Task[None]) -> None:
    _running.take(number)
    if task.cancelled():
        invocation._fail(asyncio.CancelledError("The call was cancelled"))
        return
    error = task.exception()
    if error is not None:
        invocation._fail(error)


_tools: Handles[_Tool] = Handles()
_running: Handles[Invocation] = Handles()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _decode(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


@EXECUTE
def _execute(pointer: int, params: bytes, number: int) -> None:
    invocation = Invocation(pointer)
    try:
        tool = _tools.get(number)
        if tool is None:
            raise ToolError("The tool was unregistered")
        tool.run(invocation, pointer, params)
    except BaseException as error:
        invocation._fail(error)
        # A callback cannot raise; Ctrl-C must reach the program.
        if isinstance(error, KeyboardInterrupt):
            _thread.interrupt_main()


@ON_ABORT
def _on_abort(_pointer: int, number: int) -> None:
    invocation = _running.get(number)
    task = None if invocation is None else invocation._task
    if task is None:
        return  # It has ended, or is cancelled when it starts.
    try:
        task.get_loop().call_soon_threadsafe(task.cancel)
    except RuntimeError:
        pass  # The loop is closed, and its tasks have ended.


@DESTROY
def _destroy(number: int) -> None:
    _tools.take(number)


def register(definition: ToolDefinition, function: Function) -> None:
    """Registers a tool that a function runs, which gets the parameters and an Invocation.

    A plain function runs on the thread of call(), and otherwise in dispatch(). An ``async`` function
    runs in the event loop in which it is registered, and is cancelled if its call is aborted; the
    loop dispatches from then on. The function returns the result. A ToolError ends the call with its
    code, any other exception with ``threw``. Starts the tools, and waits until they have this one.

    :raises InvalidArgumentError: a bad definition, or a duplicate name
    """
    json_text = to_json(definition)
    number = _tools.keep(_Tool(function))
    # If this fails, libplue calls _destroy().
    if library().plue_register_tool(json_text, _execute, _destroy, number) != 0:
        raise last_error()


def unregister(tool_id: str) -> None:
    """Unregisters a tool of this program by its id. Running calls continue.

    :raises UnknownToolError: this program has registered no such tool
    """
    if library().plue_unregister_tool(text(tool_id, "the tool's id")) != 0:
        raise last_error()


def on_question(function: Function | None) -> None:
    """Sets the function that answers the questions of tools; ``None`` removes it. It gets a question
    (``key``, ``kind``, ``message`` and others) and an Invocation, runs like a tool of this program, and
    may be ``async``. It returns ``{"action": "accept", "content": ...}``, ``{"action": "decline"}`` or
    ``{"action": "cancel"}``. For the kind ``client``, this program runs ``tool`` with ``arguments``, and
    the content is the result. Without a function, or if it raises, the call raises InputRequiredError.
    """
    number = 0 if function is None else _tools.keep(_Tool(function))
    # If this fails, libplue calls _destroy().
    if library().plue_set_question(_execute if number else EXECUTE(), _destroy, number) != 0:
        raise last_error()
