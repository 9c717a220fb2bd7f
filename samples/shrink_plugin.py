"""A custom op: `Shrink` pulls numbers towards zero by a threshold, as sparse coding and denoising do.

graphmill ops Shrink --plugin samples/shrink_plugin.py
graphmill build samples/denoise.py --plugin samples/shrink_plugin.py -o denoise.meta

The op is defined, then given a kernel, the shape of its output and its gradient, each by the registration that
graphmill's own ops use. A GraphDef that TensorFlow wrote with a custom op of this name and signature runs as well.
"""

from __future__ import annotations

import numpy as np

from toolkit.client import ops
from toolkit.kernels.plugins import KernelNode, ShapeContext, define_op, gradient, kernel, shape_function

# The notation of TensorFlow's REGISTER_OP: what stands in the C++ of an op can be copied.
define_op(
    "Shrink",
    inputs=["x: T", "threshold: T"],
    outputs=["y: T"],
    attrs=["T: {float, double} = DT_FLOAT", "mode: {'soft', 'hard'} = 'soft'"],
)


@kernel("Shrink")
def shrink(op: KernelNode):
    """A factory: attributes are looked at once, when the step is compiled; the function returned runs each time."""
    if op.text("mode") == "hard":
        return lambda x, threshold: np.where(np.abs(x) > threshold, x, np.zeros_like(x))
    return lambda x, threshold: np.sign(x) * np.maximum(np.abs(x) - threshold, np.zeros_like(x))


@shape_function("Shrink")
def shrink_shape(c: ShapeContext):
    """One shape per output: that of x; the threshold must be a scalar."""
    c.rank(1, 0)
    return [c.inputs[0]]


@gradient("Shrink")
def shrink_gradient(op, grad):
    """Adds the nodes of the gradients of x and of the threshold, given that of y."""
    x, threshold = op.inputs
    kept = ops.cast(ops.abs(x) > threshold, DstT=x.dtype)
    if op.get_attr("mode") == b"hard":
        return [grad * kept, None]
    falling = -grad * kept * ops.sign(x)
    return [grad * kept, ops.sum(falling, ops.range(0, ops.rank(x), 1))]
