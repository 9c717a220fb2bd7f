"""Record the nodes that TensorFlow 1.15 makes: `python -m tests.tf1.record PYTHON [FAMILY...]`.

PYTHON is an interpreter (3.7 at the latest) in which `import tensorflow` gives 1.15. See tests/tf1/dropped.
"""

from __future__ import annotations

import base64
import json
import lzma
import subprocess
import sys
from pathlib import Path

from schemas import graph_pb2
from tests.tf1 import dropped, node_oracle

SCRIPT = Path(__file__).resolve().parent / "graphs_of_calls.py"


def graphs(python: str, codes: list[str]) -> dict[str, str | list[str]]:
    """Expressions to serialized graphs in base64, or to [an error]."""
    done = subprocess.run(
        [python, str(SCRIPT)], input=json.dumps(codes), capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"record: {python} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = 0
    for family in sys.argv[2:] or dropped.FAMILIES:
        codes = [code for found in dropped.calls(family).values() for code in found]
        lines: dict[str, list[str]] = {}
        for code, graph in graphs(sys.argv[1], codes).items():
            if isinstance(graph, list):
                print(f"{family}: TensorFlow 1.15 fails at\n{code}\n  {graph[0]}", file=sys.stderr)
                failed += 1
            else:
                made = graph_pb2.GraphDef.FromString(base64.b64decode(graph))
                lines[code] = node_oracle.described(made, across_releases=True)
        text = json.dumps(lines, indent=0, sort_keys=True)
        dropped.recorded_file(family).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        print(f"{family}: {len(lines)} calls, {dropped.recorded_file(family).stat().st_size} bytes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
