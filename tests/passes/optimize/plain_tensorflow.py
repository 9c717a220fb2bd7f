"""TensorFlow without oneDNN, in a process of its own: with it, QuantizeV2 and a few others round elsewhere.

TensorFlow decides that when it is imported, once in a process; so what has to be equal bit for bit is computed there.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from toolkit.graph.graph import Graph

Array = Any


class Plain:
    """The process."""

    def __init__(self, pool: ProcessPoolExecutor):
        self._pool = pool

    def run(self, graph: Graph, fetches: list[str], feeds: dict[str, Array]) -> list[Array]:
        """What TensorFlow computes; 8-bit numbers are fed and fetched as integers."""
        return self._pool.submit(_run, graph.to_proto().SerializeToString(), fetches, feeds).result()


@contextmanager
def plain_tensorflow() -> Iterator[Plain]:
    """The process, while it is needed; TensorFlow is imported at its first use."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _without_onednn) as pool:
        yield Plain(pool)


def _without_onednn() -> None:
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def _run(graph: bytes, fetches: list[str], feeds: dict[str, Array]) -> list[Array]:
    import numpy as np
    import tensorflow as tf  # pyright: ignore[reportMissingTypeStubs]

    from tests.passes.graphs import plain_config

    v1: Any = tf.compat.v1
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(v1.GraphDef.FromString(graph), name="")
        given: dict[str, Array] = {}
        for name, value in feeds.items():
            dtype = imported.get_tensor_by_name(name).dtype
            given[name] = value.astype(dtype.as_numpy_dtype) if dtype.is_quantized else value
        with v1.Session(graph=imported, config=plain_config(tf)) as session:
            found = session.run(fetches, given)
    integers = {1: np.uint8, 4: np.int32}
    return [each if each.dtype.names is None else each.astype(integers[each.dtype.itemsize]) for each in found]
