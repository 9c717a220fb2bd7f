"""Record what TensorFlow 1.15 makes of calls and programs, for CI has none.

    python -m tests.tf1.record PYTHON [FAMILY...]               nodes of the calls in tests/tf1/dropped
    python -m tests.tf1.record PYTHON --programs [NAME...]      numbers and graphs of the programs in tests/tf1/programs

PYTHON is an interpreter (3.7 at the latest) in which `import tensorflow` gives 1.15.
"""

from __future__ import annotations

import base64
import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from schemas import graph_pb2
from tests.tf1 import dropped, node_oracle, programs

FOLDER = Path(__file__).resolve().parent


def graphs(python: str, codes: list[str], *mode: str) -> dict[str, Any]:
    """Expressions to serialized graphs in base64, or to values, or to [an error]."""
    script = str(FOLDER / "graphs_of_calls.py")
    done = subprocess.run([python, script, *mode], input=json.dumps(codes), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"record: {python} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def described(graph: bytes) -> list[str]:
    return node_oracle.described(graph_pb2.GraphDef.FromString(graph), across_releases=True)


def record_calls(python: str, families: list[str]) -> int:
    """Write the nodes of calls; returns how many 1.15 failed at."""
    failed = 0
    for family in families:
        codes = [code for found in dropped.calls(family).values() for code in found]
        values = [code for found in dropped.values(family).values() for code in found]
        lines: dict[str, Any] = {}
        for code, graph in [*graphs(python, codes).items(), *graphs(python, values, "values").items()]:
            if isinstance(graph, list):
                print(f"{family}: TensorFlow 1.15 fails at\n{code}\n  {graph[0]}", file=sys.stderr)
                failed += 1
            else:
                lines[code] = graph if isinstance(graph, dict) else described(base64.b64decode(graph))
        text = json.dumps(lines, indent=0, sort_keys=True)
        dropped.recorded_file(family).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        print(f"{family}: {len(lines)} calls, {dropped.recorded_file(family).stat().st_size} bytes")
    return failed


def run_program(python: str, name: str) -> tuple[list[str], bytes] | str:
    """What a program prints and its serialized graph, or the error that TensorFlow fails with."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "graph.pb"
        command = [python, str(FOLDER / "graph_of_program.py"), str(programs.path(name)), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        return done.stdout.split(), out.read_bytes()


def record_programs(python: str, names: list[str]) -> int:
    """Write what programs print, and their graphs; returns how many TensorFlow failed at.

    The installed TensorFlow is asked first, then 1.15, for what the other has dropped.
    """
    failed = 0
    records = {name: record for name, record in programs.recorded().items() if name in programs.NAMES}
    for name in names:
        release, found = "2.21", run_program(sys.executable, name)
        if isinstance(found, str):
            release, found = "1.15", run_program(python, name)
        if isinstance(found, str):
            print(f"{name}: TensorFlow fails:\n{found[-2000:]}", file=sys.stderr)
            failed += 1
            continue
        printed, graph = found[0], described(found[1])
        records[name] = {
            "source": programs.source_hash(name), "release": release, "printed": printed, "graph": graph
        }  # fmt: skip
        print(f"{name}: TensorFlow {release}, {len(printed)} numbers, {len(graph)} nodes")
    programs.write(records)
    print(f"{programs.RECORDED.name}: {programs.RECORDED.stat().st_size} bytes")
    return failed


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    python, *rest = sys.argv[1:]
    if rest[:1] == ["--programs"]:
        return 1 if record_programs(python, rest[1:] or programs.NAMES) else 0
    return 1 if record_calls(python, rest or dropped.FAMILIES) else 0


if __name__ == "__main__":
    sys.exit(main())
