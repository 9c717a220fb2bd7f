"""Ours: a graph on /device:GPU:0 made with the client, whose variables hold weights and data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.cuda.engines import GPU, STEPS, last_weights
from tests.bench.cuda.workloads import CudaWorkload
from toolkit import Session
from toolkit import client as gm
from toolkit.compiler.settings import PRECISIONS


class Loaded:
    """A session over the network's graph.

    Args:
        device: "gpu", or "cpu" for tests.
        strict: nodes without a kernel for GPUs are an error.
    """

    def __init__(self, workload: CudaWorkload, device: str = GPU, strict: bool = False):
        network = workload.network
        self._there = f"/device:{device.upper()}:0"
        self._variables: dict[str, Any] = {}
        self._feeds: dict[Any, Any] = {}
        self._watched, self._output, self._given = "", None, None
        with gm.Graph().as_default() as graph, graph.device(self._there):
            weights = self._hold(network.weights(), True)
            state = self._hold(network.state(), False)
            data = self._hold(network.data(), False)
            values = {name: variable.value() for name, variable in {**weights, **state, **data}.items()}
            made = network.ours(gm, values, values, values, workload.training)
            if workload.optimizer is not None:
                learned = workload.optimizer.ours(gm).minimize(made.value, var_list=list(weights.values()))
                updates = [state[name].assign(value) for name, value in made.state.items()]
                self._step: Any = gm.tuple_([made.value], control_inputs=[learned, *updates])[0].op
                self._loss = made.value
                self._watched = last_weights(network)
            else:
                # the result is kept on the device, so that somebody has asked for it
                shape = made.value.static_shape.as_list()
                self._step = gm.Variable(gm.zeros(shape), use_resource=True, name="kept").assign(made.value).op
                if workload.fed:
                    self._given = gm.placeholder(gm.float32, list(data["x"].shape))
                    given = network.ours(gm, values, values, {**values, "x": self._given}, False)
                    self._output = given.value
                self._result = made.value
            begin = gm.global_variables_initializer()
        devices = {"CPU": 1, "GPU": 1} if device == GPU else {"CPU": 1}
        precision = workload.precision
        if precision == "tf32" and "tf32" not in PRECISIONS:  # of the libraries' products, for the whole process
            from toolkit.kernels.cuda.libraries.precision import allow_tf32

            allow_tf32(True)
            precision = "f32"
        self._session = Session(graph, devices=devices, precision=precision, allow_soft_placement=not strict)
        self._begin = begin
        self._x = network.data()["x"]
        self.reset()
        self.run = self._session.make_callable(self._step)

    def _hold(self, arrays: dict[str, Any], trainable: bool) -> dict[str, Any]:
        """A variable for each array, which its initializer takes from a feed: the graph stays small."""
        found: dict[str, Any] = {}
        for name, array in arrays.items():
            given = gm.placeholder(gm.int64 if array.dtype == np.int64 else gm.float32, list(array.shape))
            label = "v_" + name.replace(".", "_")
            found[name] = gm.Variable(given, trainable=trainable, use_resource=True, name=label)
            self._feeds[given] = array
        self._variables |= found
        return found

    def reset(self) -> None:
        self._session.run(self._begin, self._feeds)

    @property
    def note(self) -> str:
        moved = sorted({line.partition(" ")[0] for line in self._session.moved() if "GPU" in line})
        return f"on the CPU: {', '.join(moved)}" if moved else ""

    def wait(self) -> None:
        from toolkit.kernels import device_types

        memory = device_types.memory(self._there.split(":")[1], 0)
        if memory is not None:
            memory.synchronize()

    def results(self) -> dict[str, Any]:
        if not self._watched:
            return {"output": self._session.run(self._result)}
        weights = self._variables[self._watched]
        before = self._session.run(weights.value())
        losses = [self._session.run([self._loss, self._step])[0] for _ in range(STEPS)]
        return {"losses": np.array(losses), "change": self._session.run(weights.value()) - before}

    def fed(self) -> Callable[[], Any] | None:
        if self._output is None:
            return None
        step = self._session.make_callable(self._output, [self._given])
        return lambda: step(self._x)
