"""Builds the wheel: `pip wheel .`, or `python3 build_wheel.py FOLDER`, with nothing installed.

The wheel has no library in it, and fits every machine; with $PLUE_LIBRARY it brings that file along,
and fits the machines that it was built for ($PLUE_PLATFORM, or this one's).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import sysconfig
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

HERE = Path(__file__).parent


def _setting(name: str) -> str:
    # Python 3.10 has no parser of TOML.
    match = re.search(rf'^{name} = "([^"]+)"$', (HERE / "pyproject.toml").read_text(), re.MULTILINE)
    assert match is not None, name
    return match[1]


def _write(archive: ZipFile, name: str, content: bytes) -> str:
    # The earliest time that a zip file knows: the same sources give the same wheel.
    entry = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    entry.compress_type = ZIP_DEFLATED
    archive.writestr(entry, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    version = _setting("version")
    library = os.environ.get("PLUE_LIBRARY") or None
    platform = "any"
    files = {
        f"plue/{path.name}": path.read_bytes()
        for path in (HERE / "plue").glob("*.py*")
        if path.is_file()
    }
    if library is not None:
        platform = os.environ.get("PLUE_PLATFORM") or sysconfig.get_platform()
        platform = re.sub(r"[-.]", "_", platform)
        name = "libplue.1.dylib" if library.endswith(".dylib") else "libplue.so.1"
        files[f"plue/lib/{name}"] = Path(library).read_bytes()
    info = f"plue-{version}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: plue\nVersion: {version}\n"
        f"Summary: Lists and calls the tools of a plue registry\n"
        "License: MIT\n"
        f"Requires-Python: {_setting('requires-python')}\n"
        "Description-Content-Type: text/markdown\n\n"
    ).encode() + (HERE / "README.md").read_bytes()
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: plue\n"
        f"Root-Is-Purelib: {'true' if library is None else 'false'}\n"
        f"Tag: py3-none-{platform}\n"
    ).encode()
    file = f"plue-{version}-py3-none-{platform}.whl"
    Path(wheel_directory).mkdir(parents=True, exist_ok=True)
    with ZipFile(Path(wheel_directory, file), "w") as archive:
        record = "".join(_write(archive, name, content) for name, content in sorted(files.items()))
        _write(archive, f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode())
    return file


if __name__ == "__main__":
    print(build_wheel(sys.argv[1] if len(sys.argv) > 1 else "."))
