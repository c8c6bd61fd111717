"""Failures as exceptions: one class for each code of plue.h."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar

__all__ = [
    "AbortedError",
    "ApprovalRequiredError",
    "Code",
    "DeniedError",
    "InputRequiredError",
    "InputUnavailableError",
    "InvalidArgumentError",
    "InvalidArgumentsError",
    "InvalidResultError",
    "NotExecutableError",
    "OutOfMemoryError",
    "OutputTooLargeError",
    "OverloadedError",
    "RuntimeCrashedError",
    "RuntimeGoneError",
    "RuntimeUnavailableError",
    "ShutdownError",
    "ThrewError",
    "TicketRefusedError",
    "ToolError",
    "ToolTimeoutError",
    "TransactionFailedError",
    "UnavailableError",
    "UnknownTaskError",
    "UnknownToolError",
    "WouldDeadlockError",
]


class Code(IntEnum):
    """The status codes of plue.h."""

    OK = 0
    UNKNOWN_TOOL = 1
    UNAVAILABLE = 2
    DENIED = 3
    NOT_EXECUTABLE = 4
    INVALID_ARGUMENTS = 5
    INVALID_RESULT = 6
    APPROVAL_REQUIRED = 7
    ABORTED = 8
    TIMEOUT = 9
    TRANSACTION_FAILED = 10
    OUTPUT_TOO_LARGE = 11
    OVERLOADED = 12
    THREW = 13
    INPUT_REQUIRED = 14
    INPUT_UNAVAILABLE = 15
    TICKET_REFUSED = 16
    INVALID_ARGUMENT = 64
    WOULD_DEADLOCK = 65
    RUNTIME_UNAVAILABLE = 66
    RUNTIME_GONE = 67
    RUNTIME_CRASHED = 68
    SHUTDOWN = 69
    OUT_OF_MEMORY = 70
    UNKNOWN_TASK = 71
    OTHER = 127


class ToolError(Exception):
    """A failure of a call, or of a function of the library.

    A tool in Python raises one to end its call with that code: ``raise DeniedError("...")``.
    """

    code: ClassVar[Code] = Code.OTHER
    _classes: ClassVar[dict[str, type[ToolError]]] = {}

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        #: The cause, in words for a model.
        self.message = message
        #: The failure as a dict: "error", "message" and, for some codes, "issues" and others.
        self.details: Mapping[str, Any] = {} if details is None else details

    def __init_subclass__(cls, code: Code | None = None) -> None:
        super().__init_subclass__()
        cls.code = code or cls.code
        # Only the first class of a code is registered: a program may derive others from it.
        ToolError._classes.setdefault(cls.code.name.lower(), cls)

    @staticmethod
    def of(details: Mapping[str, Any]) -> ToolError:
        """Returns the exception for a failure; a ToolError if its code is unknown to this version."""
        kind = ToolError._classes.get(details.get("error", ""), ToolError)
        return kind(str(details.get("message", "")), details)


class UnknownToolError(ToolError, code=Code.UNKNOWN_TOOL): ...


class UnavailableError(ToolError, code=Code.UNAVAILABLE): ...


class DeniedError(ToolError, code=Code.DENIED): ...


class NotExecutableError(ToolError, code=Code.NOT_EXECUTABLE): ...


class InvalidArgumentsError(ToolError, code=Code.INVALID_ARGUMENTS):
    """The arguments do not fit the tool's schema."""


class InvalidResultError(ToolError, code=Code.INVALID_RESULT): ...


class ApprovalRequiredError(ToolError, code=Code.APPROVAL_REQUIRED): ...


class AbortedError(ToolError, code=Code.ABORTED): ...


class ToolTimeoutError(ToolError, TimeoutError, code=Code.TIMEOUT): ...


class TransactionFailedError(ToolError, code=Code.TRANSACTION_FAILED): ...


class OutputTooLargeError(ToolError, code=Code.OUTPUT_TOO_LARGE): ...


class OverloadedError(ToolError, code=Code.OVERLOADED): ...


class ThrewError(ToolError, code=Code.THREW): ...


class InputRequiredError(ToolError, code=Code.INPUT_REQUIRED):
    """The tool has questions: resume() continues the call with the ticket and the answers."""

    @property
    def ticket(self) -> str:
        return str(self.details.get("ticket", ""))

    @property
    def questions(self) -> list[dict[str, Any]]:
        return list(self.details.get("questions", []))


class InputUnavailableError(ToolError, code=Code.INPUT_UNAVAILABLE): ...


class TicketRefusedError(ToolError, code=Code.TICKET_REFUSED): ...


class InvalidArgumentError(ToolError, code=Code.INVALID_ARGUMENT):
    """The library was called with a text with NUL, a bad option or a bad definition."""


class WouldDeadlockError(ToolError, code=Code.WOULD_DEADLOCK): ...


class RuntimeUnavailableError(ToolError, code=Code.RUNTIME_UNAVAILABLE): ...


class RuntimeGoneError(ToolError, code=Code.RUNTIME_GONE): ...


class RuntimeCrashedError(ToolError, code=Code.RUNTIME_CRASHED): ...


class ShutdownError(ToolError, code=Code.SHUTDOWN): ...


class OutOfMemoryError(ToolError, MemoryError, code=Code.OUT_OF_MEMORY): ...


class UnknownTaskError(ToolError, code=Code.UNKNOWN_TASK): ...
