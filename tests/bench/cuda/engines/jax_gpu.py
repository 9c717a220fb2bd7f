"""JAX: the whole step as one jitted function, whose weights and slots are given away to the next ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the card is shared with the others

import jax
import numpy as np

from tests.bench.cuda.engines import CPU, GPU, STEPS, last_weights
from tests.bench.cuda.workloads import CudaWorkload

#: what JAX calls a product of float32
_PRODUCTS = {"f32": "float32", "tf32": "tensorfloat32", "bf16": "default", "fp16": "default"}
_NARROW = {"bf16": jax.numpy.bfloat16, "fp16": jax.numpy.float16}


class Loaded:
    """The function and what it is given."""

    note = ""

    def __init__(self, workload: CudaWorkload, device: str = GPU):
        if device == CPU:
            jax.config.update("jax_platforms", "cpu")
        if workload.precision not in _PRODUCTS:
            raise NotImplementedError(f"JAX has no {workload.precision} by itself")
        jax.config.update("jax_default_matmul_precision", _PRODUCTS[workload.precision])
        network, jnp = workload.network, jax.numpy
        narrow = _NARROW.get(workload.precision)
        self._network, self._training = network, workload.training

        def cast(values: Any) -> Any:
            return {
                name: value.astype(narrow) if narrow is not None and value.dtype == jnp.float32 else value
                for name, value in values.items()
            }

        put = jax.device_put
        self._host = network.data()["x"]
        data, weights, state = put(network.data()), put(network.weights()), put(network.state())
        self._data = cast(data)
        if workload.optimizer is None:
            weights = cast(weights)
            # constants would be folded into the function
            self._forward = jax.jit(lambda w, s, d: network.jax(jax, w, s, d, False).value)
            self._weights, self._state = weights, state
            self.run = self._infer
            return
        begin, update = workload.optimizer.jax(jax)

        def loss_of(w: Any, s: Any, d: Any) -> Any:
            made = network.jax(jax, cast(w), s, d, True)
            return made.value, dict(made.state)

        def step(w: Any, slots: Any, s: Any, d: Any) -> Any:
            (loss, s), g = jax.value_and_grad(loss_of, has_aux=True)(w, s, d)
            w, slots = update(w, g, slots)
            return loss, w, slots, s

        self._step = jax.jit(step, donate_argnums=(0, 1, 2))
        self._weights, self._slots, self._state = weights, begin(weights), state
        self._watched = last_weights(network)
        self.run = self._learn

    def _infer(self) -> Any:
        self._last: Any = self._forward(self._weights, self._state, self._data)
        return self._last

    def _learn(self) -> Any:
        self._last, self._weights, self._slots, self._state = self._step(
            self._weights, self._slots, self._state, self._data
        )
        return self._last

    def wait(self) -> None:
        jax.block_until_ready(self._last)

    def results(self) -> dict[str, Any]:
        if not self._training:
            return {"output": np.asarray(self.run().astype(np.float32))}
        before = np.array(self._weights[self._watched])
        losses = [float(self.run()) for _ in range(STEPS)]
        return {"losses": np.array(losses, np.float32), "change": np.array(self._weights[self._watched]) - before}

    def fed(self) -> Callable[[], Any] | None:
        kind = self._data["x"].dtype

        def step() -> Any:
            given = jax.device_put(self._host).astype(kind)
            return np.asarray(self._forward(self._weights, self._state, {**self._data, "x": given}))

        return step
