"""Writing intermediate tensors to disk while a step runs."""

from __future__ import annotations

import fnmatch
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import numpy as np

from toolkit.graph.node import Node
from toolkit.kernels.types import Array, is_array


class DumpProbe:
    """Writes the outputs of matching nodes as .npy files, one at a time, so memory stays bounded.

    A file is named after the node (percent-encoded), the output index and how often the node had run before:
    `conv1%2FRelu_0_0.npy`. Values that are no arrays (resources, lists) are passed over.

    Args:
        patterns: shell patterns of node names.
        folder: where to; made if it is missing.
    """

    def __init__(self, patterns: Sequence[str], folder: str):
        self._match = re.compile("|".join(fnmatch.translate(p) for p in patterns)).match
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._runs: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.written = 0

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        if self._match(node.name) is None:
            return
        with self._lock:
            run = self._runs[node.name]
            self._runs[node.name] += 1
        for index, value in enumerate(outputs):
            if not is_array(value):
                continue
            array = cast("Array", np.asarray(value))
            if array.dtype.kind == "O":
                array = np.array([bytes(item) for item in array.ravel()]).reshape(array.shape)
            np.save(self._folder / f"{quote(node.name, safe='')}_{index}_{run}.npy", array, allow_pickle=False)
            self.written += 1
