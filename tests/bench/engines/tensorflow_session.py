"""TensorFlow's Session over the same file."""

from __future__ import annotations

from typing import Any

from tests.bench.engines import UnsupportedError, session_step
from tests.bench.workloads.base import Workload
from tests.models import Built


class Loaded:
    """A tf.compat.v1.Session with the model imported."""

    def __init__(self, workload: Workload, built: Built, threads: int | None, precision: str):
        if precision != "f32":
            raise UnsupportedError(f"a frozen float32 graph cannot be run in {precision}")
        import tensorflow as tf

        v1 = tf.compat.v1
        info = built.info
        with v1.Graph().as_default() as graph:
            if built.path.suffix == ".meta":
                v1.train.import_meta_graph(str(built.path))
            else:
                v1.import_graph_def(v1.GraphDef.FromString(built.path.read_bytes()), name="")
        count = threads or 0  # 0: as many as it takes
        config = v1.ConfigProto(intra_op_parallelism_threads=count, inter_op_parallelism_threads=count)
        session = v1.Session(graph=graph, config=config)
        inputs = [graph.get_tensor_by_name(name) for name in info["inputs"].values()]
        outputs = [graph.get_tensor_by_name(name) for name in info["outputs"].values()]
        train = [graph.get_operation_by_name(info["train"])] if "train" in info else []
        fetches: Any = [*outputs, *train] if train or len(outputs) > 1 else outputs[0]
        self._session, self._init = session, info.get("init")
        self.reset()
        self.step = session_step(session, workload.call, fetches, inputs)

    def reset(self) -> None:
        if self._init:
            self._session.run(self._session.graph.get_operation_by_name(self._init))
