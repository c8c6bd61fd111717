"""A host in Python, with the package of ffi/python: host.py LIBRARY [tool [params_json]]"""

import json
import sys

import plue


def main() -> None:
    library, tool, params = (*sys.argv[1:], *("", "echo", "{}")[len(sys.argv) - 1 :])
    plue.load(library)
    try:
        print("tools:", ", ".join(plue.tools()))
        result = plue.call(tool, json.loads(params), session_id="session-1", on_event=print)
        print("result:", json.dumps(result))
    except plue.ToolError as error:
        print("failure:", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
