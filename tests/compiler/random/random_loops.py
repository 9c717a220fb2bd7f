"""Random bodies of loops: states of many types that change places, arrays, values from outside, gradients."""

# functions over tensors, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from tests.compiler.random.random_chains import Chains, Piece, array, check_native

_STATES = [((4, 6), "float32"), ((4, 6), "float32"), ((6,), "float32"), ((), "int32"), ((4, 6), "float64"),
           ((4, 6), "bool"), ((3,), "int64"), ((), "float32"), ((6,), "float32")]  # fmt: skip
_TURNS = 6


class RandomLoop(Chains):
    """One loop, of as many turns as are fed, and some of its results.

    Args:
        how: which states there are, where each goes, which arrays are read and written.
    """

    def __init__(self, tf: ModuleType, pieces: list[Piece], how: int, *, v2: bool):
        self.v1 = v1 = tf.compat.v1
        self.feeds: dict[str, Any] = {}
        self.effects: list[Any] = []
        self._how = how
        self._pieces = pieces
        self.tf_graph = tf.Graph()
        toggle = v1.enable_control_flow_v2 if v2 else v1.disable_control_flow_v2
        toggle()
        try:
            with self.tf_graph.as_default():
                made = self._build()
                self.fetches = [v1.identity(tensor, name=f"out{i}").name for i, tensor in enumerate(made)]
        finally:
            v1.enable_control_flow_v2()

    def _fed(self, name: str, shape: tuple[int, ...], dtype: str) -> Any:
        self.feeds[f"{name}:0"] = array(shape, dtype, len(self.feeds))
        return self.v1.placeholder(dtype, list(shape), name=name)

    def _build(self) -> list[Any]:
        v1, random = self.v1, np.random.default_rng(self._how)
        n = v1.placeholder("int32", [], name="n")
        chosen = [state for state in _STATES if random.random() < 0.6] or _STATES[:2]
        initial = [self._fed(f"s{index}", *state) for index, state in enumerate(chosen)]
        outside = [
            self._fed("o0", (4, 6), "float32"),
            self._fed("o1", (4, 1), "float32"),
            self._fed("o2", (3,), "int64"),
        ]
        rows = self._fed("rows", (_TURNS, 6), "float32")
        reads, writes = random.random() < 0.6, random.random() < 0.6
        backwards, reversed_ = random.random() < 0.3, random.random() < 0.5
        source = v1.TensorArray("float32", _TURNS, element_shape=[6]).unstack(rows) if reads else None
        target = v1.TensorArray("float32", _TURNS, element_shape=[6]) if writes else None

        def body(i: Any, *state: Any) -> Any:
            arrays, tensors = state[len(initial) :], list(state[: len(initial)])
            self.pool = [*tensors, *outside, i]
            at = _TURNS - 1 - i if reversed_ else i
            if source is not None:
                self.pool.append(source.read(at))
            for kind, first, second, turn in self._pieces:
                self.add(kind % 13 if kind % 13 not in (9, 10, 12) else 0, first, second, turn)
            after = [self._next(tensor, random) for tensor in tensors]
            if arrays:
                after.append(arrays[0].write(at, self._row()))
            return [i + 1, *after]

        states = [v1.constant(0), *initial, *([] if target is None else [target])]
        final = v1.while_loop(lambda i, *_: i < n, body, states)
        made = [tensor for tensor in final[: len(initial) + 1] if random.random() < 0.7] or [final[1]]
        if target is not None:
            made.append(final[-1].gather(v1.range(_TURNS - n, _TURNS) if reversed_ else v1.range(0, n)))
        floats = [tensor for tensor in [*initial, rows] if tensor.dtype == v1.float32]
        ends = [tensor for tensor in made if tensor.dtype == v1.float32]
        if backwards and ends and floats:
            made += [tensor for tensor in v1.gradients(ends, floats) if tensor is not None]
        return made

    def _next(self, state: Any, random: Any) -> Any:
        """The value of a state in the next turn: any that has its type and shape, itself at times."""
        fitting = [t for t in self.pool if t.dtype == state.dtype and t.shape == state.shape]
        value = fitting[random.integers(len(fitting))] if random.random() < 0.9 else state
        if value.dtype == self.v1.bool or random.random() < 0.2:
            return value
        return self.v1.clip_by_value(value, -50, 50)

    def _row(self) -> Any:
        fitting = [t for t in self.pool if t.dtype == self.v1.float32 and t.shape == (6,)]
        return fitting[-1] if fitting else self.v1.zeros([6])

    def check(self) -> None:
        """All agree, whatever the number of turns."""
        steps = [{**self.feeds, "n:0": np.int32(turns)} for turns in (0, 1, _TURNS, 2)]
        check_native(self.tf_graph, self.fetches, steps, [])
