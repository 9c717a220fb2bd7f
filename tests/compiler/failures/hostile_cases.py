"""Graphs whose shapes and types do not go together, which an honest graph with other feeds than planned has too.

`python -m tests.compiler.failures.hostile_cases` runs all of them, each in a process of its own, compiled and node by
node, and prints a line of JSON for each: the case, and how the two ended.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.compiler.operations.rows import numbers
from toolkit import client as gm
from toolkit.errors import GraphmillError
from toolkit.runtime.session import Session

ops = gm.ops
Built = tuple[Any, Mapping[str, Any]]  # what is fetched, and the feeds
_MEMORY = 6 << 30  # bytes of address space: what wants more is refused
_SECONDS = 60
_TYPES = {"float32": gm.float32, "int32": gm.int32}

CASES: dict[str, Callable[[], Built]] = {}


def _case(build: Callable[[], Built]) -> Callable[[], Built]:
    CASES[build.__name__.lstrip("_")] = build
    return build


def _fed(**arrays: Any) -> tuple[list[Any], dict[str, Any]]:
    """Placeholders of unknown shape for arrays, and the feeds."""
    placeholders = [gm.placeholder(_TYPES[array.dtype.name], None, name=name) for name, array in arrays.items()]
    return placeholders, {f"{name}:0": array for name, array in arrays.items()}


def _norm_gradient(**changed: Any) -> Built:
    given = {"dy": numbers(2, 32, 32, 16), "x": numbers(2, 32, 32, 16), **{k: numbers(16) for k in "abc"}, **changed}
    (dy, x, *rest), feeds = _fed(**given)
    outputs = ops.fused_batch_norm_grad_v2(dy, x, *rest, is_training=True, data_format="NHWC")
    return list(outputs)[:3], feeds


@_case
def _norm_gradient_smaller() -> Built:
    return _norm_gradient(dy=numbers(2, 4, 4, 16))


@_case
def _norm_gradient_other_channels() -> Built:
    return _norm_gradient(a=numbers(4))


@_case
def _norm_gradient_larger() -> Built:
    return _norm_gradient(dy=numbers(2, 64, 64, 16))


@_case
def _norm_other_channels() -> Built:
    (x, scale, offset), feeds = _fed(x=numbers(2, 32, 32, 16), s=numbers(4), o=numbers(16))
    empty = gm.constant(np.zeros(0, np.float32))
    return list(ops.fused_batch_norm_v3(x, scale, offset, empty, empty, is_training=True))[:3], feeds


def _pool_gradient(kernel: int, padding: str, **changed: Any) -> Built:
    given = {"x": numbers(2, 32, 32, 16), "y": numbers(2, 16, 16, 16), "dy": numbers(2, 16, 16, 16), **changed}
    (x, y, dy), feeds = _fed(**given)
    strides = [1, 2, 2, 1]
    return ops.max_pool_grad(x, y, dy, ksize=[1, kernel, kernel, 1], strides=strides, padding=padding), feeds


@_case
def _pool_gradient_smaller() -> Built:
    return _pool_gradient(3, "SAME", dy=numbers(2, 4, 4, 16))


@_case
def _tiled_pool_gradient_smaller() -> Built:
    return _pool_gradient(2, "VALID", dy=numbers(2, 4, 4, 16))


@_case
def _tiled_pool_gradient_larger() -> Built:
    return _pool_gradient(2, "VALID", dy=numbers(2, 32, 32, 16))


@_case
def _pool_gradient_both_smaller() -> Built:
    return _pool_gradient(2, "VALID", y=numbers(2, 4, 4, 16), dy=numbers(2, 4, 4, 16))


def _conv_input(stride: int, dy: Any, w: Any = None, **attrs: Any) -> Built:
    (w, dy), feeds = _fed(w=numbers(3, 3, 16, 32) if w is None else w, dy=dy)
    sizes = gm.constant([2, 32, 32, 16], gm.int32)
    return ops.conv2d_backprop_input(sizes, w, dy, strides=[1, stride, stride, 1], padding="SAME", **attrs), feeds


@_case
def _conv_input_smaller() -> Built:
    return _conv_input(1, numbers(2, 8, 8, 32))


@_case
def _conv_input_strided_smaller() -> Built:
    return _conv_input(2, numbers(2, 4, 4, 32))


@_case
def _conv_input_other_channels() -> Built:
    return _conv_input(1, numbers(2, 32, 32, 16))


@_case
def _conv_input_other_batch() -> Built:
    return _conv_input(1, numbers(1, 32, 32, 32))


@_case
def _conv_input_groups() -> Built:
    return _conv_input(1, numbers(2, 32, 32, 32), numbers(3, 3, 5, 32))


def _conv_filter(stride: int, dy: Any, sizes: Any = (3, 3, 16, 32)) -> Built:
    (x, dy), feeds = _fed(x=numbers(2, 32, 32, 16), dy=dy)
    wanted = gm.constant(list(sizes), gm.int32)
    return ops.conv2d_backprop_filter(x, wanted, dy, strides=[1, stride, stride, 1], padding="SAME"), feeds


@_case
def _conv_filter_smaller() -> Built:
    return _conv_filter(1, numbers(2, 8, 8, 32))


@_case
def _conv_filter_strided_smaller() -> Built:
    return _conv_filter(2, numbers(2, 4, 4, 32))


@_case
def _conv_filter_other_channels() -> Built:
    return _conv_filter(1, numbers(2, 32, 32, 16))


@_case
def _conv_filter_groups() -> Built:
    return _conv_filter(1, numbers(2, 32, 32, 32), (3, 3, 7, 32))


@_case
def _depthwise_input_smaller() -> Built:
    (w, dy), feeds = _fed(w=numbers(3, 3, 16, 1), dy=numbers(2, 4, 4, 16))
    sizes = gm.constant([2, 32, 32, 16], gm.int32)
    made = ops.depthwise_conv2d_native_backprop_input(sizes, w, dy, strides=[1, 1, 1, 1], padding="SAME")
    return made, feeds


@_case
def _depthwise_filter_smaller() -> Built:
    (x, dy), feeds = _fed(x=numbers(2, 32, 32, 16), dy=numbers(2, 4, 4, 16))
    sizes = gm.constant([3, 3, 16, 1], gm.int32)
    made = ops.depthwise_conv2d_native_backprop_filter(x, sizes, dy, strides=[1, 1, 1, 1], padding="SAME")
    return made, feeds


@_case
def _conv_other_channels() -> Built:
    (x, w), feeds = _fed(x=numbers(2, 32, 32, 16), w=numbers(3, 3, 24, 32))
    return ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"), feeds


@_case
def _conv_of_a_filter_in_groups() -> Built:
    (x,), feeds = _fed(x=numbers(2, 32, 32, 16))
    return ops.conv2d(x, gm.constant(numbers(3, 3, 5, 32)), strides=[1, 1, 1, 1], padding="SAME"), feeds


@_case
def _resize_to_the_largest() -> Built:
    (x,), feeds = _fed(x=numbers(1, 32, 32, 16))
    size = gm.constant([2**31 - 1, 2**31 - 1], gm.int32)
    return ops.resize_bilinear(x, size, half_pixel_centers=True), feeds


@_case
def _fill_of_more_than_there_is() -> Built:
    (x,), feeds = _fed(x=numbers(16))
    return ops.fill(gm.constant([2**31 - 1, 2**31 - 1, 2**31 - 1], gm.int32), 1.0) + x, feeds


@_case
def _product_of_other_sizes() -> Built:
    (a, b), feeds = _fed(a=numbers(64, 48), b=numbers(64, 48))
    return ops.mat_mul(a, b), feeds


@_case
def _relu_gradient_smaller() -> Built:
    (dy, x), feeds = _fed(dy=numbers(8, 8), x=numbers(64, 64))
    return ops.relu_grad(dy, x), feeds


@_case
def _bias_of_another_size() -> Built:
    (x, b), feeds = _fed(x=numbers(64, 64), b=numbers(16))
    return ops.relu(ops.bias_add(x, b)), feeds


def _cell(**changed: Any) -> Built:
    given: dict[str, Any] = {"x": numbers(4, 8), "c": numbers(4, 16), "h": numbers(4, 16), **changed}
    w, b = given.pop("w", numbers(24, 64)), given.pop("b", numbers(64))
    (x, c, h), feeds = _fed(**given)
    peephole = gm.constant(np.zeros(16, np.float32))
    made = ops.lstm_block_cell(x, c, h, gm.constant(w), peephole, peephole, peephole, gm.constant(b))
    return list(made)[-1], feeds


@_case
def _cell_of_a_smaller_state() -> Built:
    return _cell(c=numbers(1, 16))


@_case
def _cell_of_other_weights() -> Built:
    return _cell(w=numbers(20, 64))


@_case
def _gru_of_other_biases() -> Built:
    (x, h), feeds = _fed(x=numbers(4, 8), h=numbers(4, 16))
    weights = (gm.constant(numbers(24, 32)), gm.constant(numbers(24, 16)))
    made = ops.gru_block_cell(x, h, *weights, gm.constant(numbers(4)), gm.constant(numbers(16)))
    return list(made)[-1], feeds


@_case
def _loop_that_grows() -> Built:
    (x,), feeds = _fed(x=numbers(8, 8))
    body = lambda i, s: [i + 1, ops.concat_v2([s, s], 0)]  # noqa: E731 -- one line says it
    made = gm.while_loop(lambda i, s: i < 4, body, [gm.constant(0), x])
    return made[1], feeds


@_case
def _branch_by_two_numbers() -> Built:
    (x, which), feeds = _fed(x=numbers(64, 64), which=numbers(2))
    taken, other = ops.switch(x, ops.greater(which, 0.0))
    return ops.merge([ops.tanh(taken), ops.relu(other)])[0], feeds


@_case
def _update_of_another_size() -> Built:
    (dy,), feeds = _fed(dy=numbers(8))
    variable = ops.variable_v2(shape=[64], dtype=gm.float32, shared_name="v")
    with gm.control_dependencies([ops.assign(variable, gm.constant(numbers(64)))]):
        return ops.apply_gradient_descent(variable, 0.5, dy), feeds


@_case
def _gather_beyond_the_end() -> Built:
    (ids,), feeds = _fed(ids=np.arange(64, dtype=np.int32))
    return ops.gather_v2(gm.constant(numbers(32, 64)), ids, 0), feeds


def outcome(name: str) -> str:
    """How a case ends: the kinds of its results, or the status."""
    with gm.Graph().as_default() as graph:
        fetches, feeds = CASES[name]()
    with Session(graph) as running:
        ended: list[str] = []
        for _ in range(2):
            try:
                got = running.run(fetches, feeds)
                results: list[Any] = got if isinstance(got, list) else [got]
                ended.append("; ".join(f"{each.dtype}{list(each.shape)}" for each in results))
            except GraphmillError as error:
                ended.append(type(error).__name__)
        return ended[0] if ended[0] == ended[1] else " then ".join(ended)


def _in_child(name: str, segments: str) -> str:
    """The same in a process of its own: "signal 11" is how it ends that touches what is not there."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["GRAPHMILL_SEGMENTS"] = segments
        try:
            text = outcome(name)
        except Exception as error:
            text = f"not ours: {type(error).__name__}: {error}"
        os.write(write, text.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"signal {os.WTERMSIG(status)}"


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        ended = {"compiled": _in_child(case, ""), "node by node": _in_child(case, "off")}
        print(json.dumps({"case": case, **ended}), flush=True)
