# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.nn: embeddings of sparse ids that may be missing, losses of replicas, older normalization."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.checks import assertions
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.tensorflow.families.arguments import needed, renamed
from toolkit.tensorflow.families.ops.math import div_no_nan

#: what the size of a batch must be, by what asks for it
_ASKED = {"assert_scalar": "scalar", "assert_integer": "an integer", "assert_non_negative": "non-negative"}


def batch_norm_with_global_normalization(
    t: Any = None, m: Any = None, v: Any = None, beta: Any = None, gamma: Any = None, variance_epsilon: Any = None,
    scale_after_normalization: Any = None, name: Any = None, input: Any = None, mean: Any = None, variance: Any = None,
) -> Tensor:  # fmt: skip
    x = needed("t", renamed("input", input, "t", t))
    average = needed("m", renamed("mean", mean, "m", m))
    spread = needed("v", renamed("variance", variance, "v", v))
    scale = gamma if scale_after_normalization else None
    return nn_ops.batch_normalization(x, average, spread, beta, scale, variance_epsilon, name)


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum; there is one replica."""
    return math_ops.reduce_sum(regularization_loss) / 1


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of losses, weighted, by the number of examples."""
    losses = convert_to_tensor(per_example_loss)
    if losses.static_shape.rank == 0:
        raise ValueError(f"per_example_loss: '{losses.name}' is a scalar; expected a loss for each example")
    kind = losses.dtype.base
    if sample_weight is not None:
        losses = losses * math_ops.cast(convert_to_tensor(sample_weight), kind)
    losses = math_ops.cast(losses, kind)
    if global_batch_size is None:
        global_batch_size = array_ops.shape(losses)[0] * 1
    for check in (assertions.assert_scalar, assertions.assert_integer, assertions.assert_non_negative):
        check(global_batch_size, message=f"global_batch_size must be {_ASKED[check.__name__]}.")
    total = math_ops.reduce_sum(losses)
    return div_no_nan(total, math_ops.cast(global_batch_size, kind))
