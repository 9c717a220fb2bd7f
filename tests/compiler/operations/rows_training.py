"""Batch norms of training steps with their gradients, and resizing."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np

from tests.compiler.operations.rows import Table, numbers, positive
from toolkit import client as gm

ops = gm.ops
ROWS = Table()

_EMPTY = np.zeros(0, np.float32)
IMAGES: tuple[tuple[int, ...], ...] = (
    (2, 17, 23, 6), (4, 32, 32, 1), (2, 31, 37, 2), (2, 31, 37, 3), (1, 1, 1, 4099), (1, 64, 64, 1), (2, 3, 3, 5),
    (8, 9, 7, 64), (4099, 1, 1, 1),
)  # fmt: skip
_NORMS = {1: ops.fused_batch_norm, 2: ops.fused_batch_norm_v2, 3: ops.fused_batch_norm_v3}
_GRADIENTS = {1: ops.fused_batch_norm_grad, 2: ops.fused_batch_norm_grad_v2, 3: ops.fused_batch_norm_grad_v3}


def _norm(x: Any, channels: int, version: int = 3, **attrs: Any) -> tuple[Any, ...]:
    return _NORMS[version](x, positive(channels), numbers(channels), _EMPTY, _EMPTY, epsilon=1e-2, **attrs)


def _gradient(x: Any, dy: Any, channels: int, version: int = 3, **attrs: Any) -> list[Any]:
    saved = _norm(x, channels, version, **{k: v for k, v in attrs.items() if k != "is_training"})
    more = [saved[5]] if version == 3 else []
    return list(_GRADIENTS[version](dy, x, positive(channels), saved[3], saved[4], *more, epsilon=1e-2, **attrs)[:3])


for _shape in IMAGES:
    _channels = _shape[-1]
    ROWS.add(
        f"batch norm of a step {list(_shape)}", [_shape],
        lambda x, c=_channels: [*_norm(x, c)[:5], ops.relu(_norm(ops.tanh(x), c)[0]), _norm(x, c)[2], _norm(x, c)[1]],
    )  # fmt: skip
    ROWS.add(
        f"batch norm gradient {list(_shape)}", [_shape, _shape],
        lambda x, dy, c=_channels: _gradient(x, dy, c) + _gradient(ops.tanh(x), ops.tanh(dy), c)[:1],
    )  # fmt: skip
for _version in (1, 2, 3):
    ROWS.add(f"batch norm of version {_version}", [IMAGES[0]], lambda x, v=_version: list(_norm(x, 6, v)))
    ROWS.add(
        f"batch norm gradient of version {_version}", [IMAGES[0]] * 2, lambda x, dy, v=_version: _gradient(x, dy, 6, v),
    )  # fmt: skip
ROWS.add("batch norm gradient of inference", [IMAGES[0]] * 2, lambda x, dy: list(
    ops.fused_batch_norm_grad_v3(
        dy, x, positive(6), numbers(6), positive(6, seed=1), _EMPTY, epsilon=1e-2, is_training=False
    )[:3]))  # fmt: skip
ROWS.add("batch norm with a moving average", [IMAGES[0]], lambda x: list(ops.fused_batch_norm_v3(
    x, positive(6), numbers(6), numbers(6, seed=1), positive(6, seed=1), exponential_avg_factor=0.25)[:3]))  # fmt: skip
ROWS.add("batch norm of a step channels first", [(2, 6, 17, 23)] * 2, lambda x, dy: [
    *_norm(x, 6, data_format="NCHW")[:3], *_gradient(x, dy, 6, data_format="NCHW")])  # fmt: skip
ROWS.add("batch norm of fed scales", [IMAGES[0], (6,), (6,)], lambda x, s, b: [
    ops.relu(ops.fused_batch_norm_v3(x, s, b, _EMPTY, _EMPTY)[0] + 0.5)])  # fmt: skip
ROWS.add("batch norm of equal numbers", [np.full((2, 17, 23, 6), 3.0, np.float32)], lambda x: list(_norm(x, 6)[:5]))
ROWS.add("batch norm after a conv", [(2, 13, 14, 8)], lambda x: [
    ops.relu(_norm(y, 8)[0] + x)
    for y in [ops.conv2d(x, numbers(3, 3, 8, 8) * np.float32(0.1), strides=[1, 1, 1, 1], padding="SAME")]])  # fmt: skip

for _method in ("bilinear", "nearest_neighbor"):
    for _corners, _half in ((False, False), (True, False), (False, True)):
        for _size in ([26, 28], [7, 9], [13, 14], [39, 5], [1, 1], [14, 28]):
            ROWS.add(
                f"resize {_method} {_corners} {_half} {_size}", [(2, 13, 14, 24)],
                lambda x, m=_method, c=_corners, h=_half, s=_size: getattr(ops, f"resize_{m}")(
                    x, np.array(s, np.int32), align_corners=c, half_pixel_centers=h
                ),
            )  # fmt: skip
for _shape in ((1, 1, 1, 300), (1, 1, 65, 3), (3, 31, 33, 1), (2, 16, 16, 2), (0, 9, 9, 4)):
    ROWS.add(f"resize of {list(_shape)}", [_shape], lambda x: [
        ops.resize_bilinear(ops.tanh(x), [40, 37], align_corners=c, half_pixel_centers=h)
        for c, h in ((False, False), (True, False), (False, True))])  # fmt: skip
ROWS.add(
    "resize to a fed size",
    [(2, 13, 14, 8), np.array([20, 30], np.int32)],
    lambda x, s: ops.relu(ops.resize_bilinear(x, s)),
)
ROWS.add(
    "resize of whole numbers", [numbers(2, 13, 14, 24, dtype=np.int32)], lambda x: ops.resize_bilinear(x, [26, 28])
)
