"""Writing intermediate tensors to disk while a step runs."""

from __future__ import annotations

import fnmatch
import re
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import numpy as np

from toolkit.errors import UsageError, about_option, did_you_mean
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.kernels.types import Array, is_array
from toolkit.runtime.probes.on_host import on_host


def require_match(pattern: str, graph: Graph) -> None:
    """Raises UsageError when no node of a graph or of its functions has a name that a pattern means."""
    names = [node.name for node in graph.nodes]
    names += [node.name for function in graph.library for node in graph.library.function(function).node_def]
    if not fnmatch.filter(names, pattern):
        near = did_you_mean(re.sub(r"[*?\[\]]", "", pattern), names)
        with about_option("--dump"):
            raise UsageError(f"the pattern '{pattern}' matches no node{near}")


class DumpProbe:
    """Writes the outputs of matching nodes as .npy files, one at a time, so memory stays bounded.

    A file is named after the node (percent-encoded), the output index and how often the node had run before:
    `conv1%2FRelu_0_0.npy`. Values that are no arrays (resources, lists) are passed over.

    Args:
        patterns: shell patterns of node names.
        folder: where to; made when there is something to write.
    """

    def __init__(self, patterns: Sequence[str], folder: str):
        self._match = re.compile("|".join(fnmatch.translate(p) for p in patterns)).match
        self._folder = Path(folder)
        self._runs: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.written = 0

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        if self._match(node.name) is not None:
            self._write(node.name, enumerate(on_host(outputs, device)))

    def fetched(self, outputs: Sequence[Output], values: Sequence[Any]) -> None:
        """Tensors of a step that were fetched for it (`dump_fetches`)."""
        found: dict[str, list[tuple[int, Any]]] = {}
        for output, value in zip(outputs, values, strict=True):
            found.setdefault(output.node.name, []).append((output.index, value))
        for name, each in found.items():
            self._write(name, each)

    def _write(self, name: str, outputs: Iterable[tuple[int, Any]]) -> None:
        with self._lock:
            run = self._runs[name]
            self._runs[name] += 1
        for index, value in outputs:
            if not is_array(value):
                continue
            self._folder.mkdir(parents=True, exist_ok=True)
            array = cast("Array", np.asarray(value))
            if array.dtype.kind == "O":
                array = np.array([bytes(item) for item in array.ravel()]).reshape(array.shape)
            np.save(self._folder / f"{quote(name, safe='')}_{index}_{run}.npy", array, allow_pickle=False)
            self.written += 1
