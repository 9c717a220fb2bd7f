"""`python -m tests.tf1.graph_here PROGRAM OUT [ARGUMENTS...]`: graph_of_program's counterpart, with this library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from toolkit.tensorflow import programs
from toolkit.tensorflow.families.framework import session


def main() -> int:
    path, out, *arguments = sys.argv[1:]
    opened: list[Any] = []
    session.opened.append(opened.append)
    code = programs.execute(programs.Program(path, None, arguments))
    if code == 0:
        largest = max((graph.as_graph_def() for graph in opened), key=lambda graph: len(graph.node))
        Path(out).write_bytes(largest.SerializeToString())
    return code


if __name__ == "__main__":
    sys.exit(main())
