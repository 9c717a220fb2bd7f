# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.debugging: what has had other names for its arguments."""

from __future__ import annotations

from typing import Any

from toolkit.client.checks import assertions
from toolkit.client.construction.tensor import Tensor
from toolkit.tensorflow.families.arguments import needed, renamed


def assert_all_finite(t: Any = None, msg: Any = None, name: Any = None, x: Any = None, message: Any = None) -> Tensor:
    t = needed("x", renamed("x", x, "t", t))
    return assertions.check_finite(t, needed("message", renamed("message", message, "msg", msg)), name)
