"""How many calls each stage takes over two graphs: `python -m tests.passes.stage_calls SMALL LARGE`.

In a process of its own, where nothing else runs and no cache is warm: the counts are the same each time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.formats.models.model import read_model, write_model
from toolkit.graph.check import require_valid
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.passes.partitioning.partition import PartitionGraph
from toolkit.passes.placement.place import Place
from toolkit.passes.pruning.prune import Prune
from toolkit.passes.validate.engine import validate_files

_DEVICES = [DeviceSpec.parse(f"/job:localhost/replica:0/task:0/device:CPU:{number}") for number in (0, 1)]


def calls(work: Callable[[], Any]) -> int:
    """How many functions are called, in Python and out of it."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def placed(graph: Graph) -> Graph:
    """With a device for every node: two take turns in blocks."""
    out = graph.copy()
    for node in out:
        block = node.name.partition("/")[0][-1]
        node.device = str(_DEVICES[block.isdigit() and int(block) % 2])
    return out


#: stage to what it does with a file, and how many calls a node may take: what it takes today and a quarter
STAGES: dict[str, tuple[Callable[[Path], Callable[[], Any]], int]] = {
    "read": (lambda path: lambda: read_model(path), 18),
    "verify": (lambda path: (lambda graph: lambda: require_valid(graph))(read_model(path).graph), 40),
    "shapes": (lambda path: (lambda graph: lambda: infer(graph))(read_model(path).graph), 90),
    "prune": (lambda path: (lambda graph: lambda: Prune((), ("y",)).apply(graph))(read_model(path).graph), 47),
    "place": (lambda path: (lambda graph: lambda: Place(_DEVICES).apply(graph))(read_model(path).graph), 132),
    "partition": (
        lambda path: (lambda graph: lambda: PartitionGraph(by="device").split(graph))(placed(read_model(path).graph)),
        79,
    ),
    "write": (
        lambda path: (lambda model: lambda: write_model(model, path.with_suffix(".out.pb")))(read_model(path)),
        14,
    ),
    "validate": (lambda path: lambda: validate_files([str(path)]), 250),
}  # fmt: skip


def main(small: Path, large: Path) -> None:
    """Print stage to the calls over both, as JSON."""
    counts: dict[str, list[int]] = {}
    for stage, (prepare, _) in STAGES.items():
        prepare(small)()  # what is imported, and made once
        counts[stage] = [calls(prepare(small)), calls(prepare(large))]
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
