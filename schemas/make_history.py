"""Make op_history.txt.xz: in which release of TensorFlow each op and attribute first appears.

    python -m schemas.make_history FOLDER

downloads the wheels of TensorFlow's releases from the package index one after the other into FOLDER, reads the
versions of its C++ header and the names in its generated op wrappers, deletes each wheel, and writes the table. What
was read stays in FOLDER, so that an interrupted run goes on where it was. Signatures of ops are facts; no text of
TensorFlow is copied.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from schemas.op_def_pb2 import OpList

TARGET = Path(__file__).with_name("op_history.txt.xz")
#: release to (package, Python version of its wheel)
RELEASES = {
    **{f"1.{minor}": ("tensorflow", "36") for minor in range(4, 15)},
    "1.15": ("tensorflow-cpu", "36"),
    "2.0": ("tensorflow", "36"),
    **{f"2.{minor}": ("tensorflow-cpu", "36") for minor in range(1, 7)},
    **{f"2.{minor}": ("tensorflow-cpu", "39") for minor in range(7, 12)},
    **{f"2.{minor}": ("tensorflow-cpu", "311") for minor in range(12, 22)},
}
_PLATFORMS = ("manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_27")
_CALL = re.compile(r'(?:_apply_op_helper|\.apply_op)\(\s*"(\w+)"\s*,?([^()]*(?:\([^()]*\)[^()]*)*)\)')
_ATTRS = re.compile(r"_attrs = \(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_KEYWORD = re.compile(r"(\w+)\s*=")
_STRING = re.compile(r'"(\w+)"')
_DEFINE = re.compile(r"#define TF_GRAPH_DEF_VERSION(_MIN_CONSUMER|_MIN_PRODUCER)?\s+(\d+)")


def read_wheel(path: Path) -> dict[str, Any]:
    """The versions and op wrappers in a wheel: {"versions": {...}, "ops": {op: [names of inputs and attributes]}}."""
    versions: dict[str, int] = {}
    ops: dict[str, set[str]] = {}
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if name.endswith(("core/public/version.h", "core/public/release_version.h")):
                text = wheel.read(name).decode()
                versions |= {f"producer{key.lower()}": int(value) for key, value in _DEFINE.findall(text)}
            elif re.search(r"/gen_\w+\.py$", name):
                _read_wrappers(wheel.read(name).decode(), ops)
    return {"versions": versions, "ops": {op: sorted(names) for op, names in sorted(ops.items())}}


def _read_wrappers(text: str, ops: dict[str, set[str]]) -> None:
    calls = list(_CALL.finditer(text))
    for position, call in enumerate(calls):
        names = ops.setdefault(call[1], set())
        names.update(_KEYWORD.findall(call[2]))
        end = calls[position + 1].start() if position + 1 < len(calls) else len(text)
        for attrs in _ATTRS.finditer(text, call.end(), end):
            names.update(_STRING.findall(attrs[1]))


def collect(folder: Path) -> dict[str, dict[str, Any]]:
    """What every release has, downloading what is not there yet."""
    found: dict[str, dict[str, Any]] = {}
    for release, (package, python) in RELEASES.items():
        notes = folder / f"{release}.json"
        if not notes.exists():
            abi = f"cp{python}" + ("m" if python == "36" else "")
            platforms = [word for tag in _PLATFORMS for word in ("--platform", f"{tag}_x86_64")]
            command = [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
                *("--dest", str(folder), "--python-version", python, "--implementation", "cp", "--abi", abi),
                *platforms,
                f"{package}=={release}.*",
            ]
            subprocess.run(command, check=True)
            (wheel,) = folder.glob("*.whl")
            notes.write_text(json.dumps(read_wheel(wheel)))
            wheel.unlink()
        found[release] = json.loads(notes.read_text())
        print(release, found[release]["versions"], len(found[release]["ops"]), "ops", file=sys.stderr)
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """The lines of the table: releases with their versions; ops and attributes that came after the first release."""
    lines = [
        f"release {release} {content['versions']['producer']} {content['versions']['producer_min_consumer']}"
        for release, content in found.items()
    ]
    order = list(found)
    packed = Path(__file__).with_name("ops.pb.xz").read_bytes()
    for op in OpList.FromString(lzma.decompress(packed)).op:
        known = [release for release in order if op.name in found[release]["ops"]]
        if not known:
            continue  # no wrapper in any release: internal
        lines.append(f"op {op.name} {known[0]}")
        for attr in op.attr:
            having = [release for release in known if attr.name in found[release]["ops"][op.name]]
            if having and having[0] != known[0]:
                lines.append(f"attr {op.name}.{attr.name} {having[0]}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    root = Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(lzma.compress(table(collect(root)).encode(), preset=9))
