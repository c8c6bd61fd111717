"""A host in Python, with ctypes: host.py LIBRARY [tool [params_json]]"""

import ctypes
import json
import sys

METADATA_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


class ToolContext(ctypes.Structure):
    _fields_ = [
        ("session_id", ctypes.c_char_p),
        ("message_id", ctypes.c_char_p),
        ("abort_signal", ctypes.c_void_p),
        ("metadata_callback", METADATA_CALLBACK),
        ("user_data", ctypes.c_void_p),
    ]


class ToolError(Exception):
    """A tool call that failed; `details` is the failure's JSON, parsed."""

    def __init__(self, details):
        super().__init__(details["message"])
        self.details = details


class Plue:
    """The library. Calls release Python's lock, so that other threads run meanwhile."""

    def __init__(self, path, config=None):
        self._library = ctypes.CDLL(path)
        # Not c_char_p: ctypes would copy the string and lose the pointer that must be freed.
        self._declare("plue_tool_list", ctypes.c_void_p)
        self._declare(
            "plue_tool_execute",
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.POINTER(ToolContext),
        )
        self._declare("plue_free_json", None, ctypes.c_void_p)
        self._declare("plue_abort_signal_new", ctypes.c_void_p)
        self._declare("plue_abort_signal_abort", None, ctypes.c_void_p, ctypes.c_char_p)
        self._declare("plue_abort_signal_release", None, ctypes.c_void_p)
        self._declare("plue_get_last_error", ctypes.c_char_p)
        self._declare("plue_get_last_error_json", ctypes.c_char_p)
        self._declare("plue_abi_version", ctypes.c_uint32)
        self._declare("plue_init", ctypes.c_int, ctypes.c_char_p)
        self._declare("plue_shutdown", None)
        if self._library.plue_abi_version() != 1:
            raise ImportError("libplue has another ABI version")
        if self._library.plue_init(json.dumps(config or {}).encode()) != 0:
            raise ValueError(self._library.plue_get_last_error().decode())

    def _declare(self, name, result, *arguments):
        function = getattr(self._library, name)
        function.restype = result
        function.argtypes = arguments

    def _take(self, pointer):
        text = ctypes.string_at(pointer)
        self._library.plue_free_json(pointer)
        failure = json.loads(self._library.plue_get_last_error_json())
        if failure:
            raise ToolError(failure)
        return json.loads(text)

    def tools(self):
        return self._take(self._library.plue_tool_list())

    def execute(self, tool, params, session=None, on_event=None, signal=None):
        def forward(event, _user_data):
            on_event(json.loads(event))

        context = ToolContext(
            session_id=session and session.encode(),
            abort_signal=signal,
            # `context` keeps the callback alive during the call.
            metadata_callback=METADATA_CALLBACK(forward) if on_event else METADATA_CALLBACK(),
        )
        arguments = json.dumps(params).encode()
        return self._take(
            self._library.plue_tool_execute(tool.encode(), arguments, ctypes.byref(context))
        )

    def shutdown(self):
        self._library.plue_shutdown()


def main():
    tool = sys.argv[2] if len(sys.argv) > 2 else "echo"
    params = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    plue = Plue(sys.argv[1])
    try:
        print("tools:", ", ".join(plue.tools()))
        print("result:", json.dumps(plue.execute(tool, params, "session-1", on_event=print)))
    except ToolError as error:
        print("failure:", error)
        sys.exit(1)
    finally:
        plue.shutdown()


if __name__ == "__main__":
    main()
