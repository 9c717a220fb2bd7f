"""Which implementation of a convolution is faster where oneDNN's own choice, the first that fits, is not.

Measured with oneDNN 3.2 on a processor with AVX-512 over the layers of MobileNetV2, EfficientNetB0 and ResNet50.
"""

from __future__ import annotations

import math

_SMALL = 100  # pixels of an image, below which there is nothing to gain
_FEW = 64  # channels that older code for depthwise convolutions takes in one pass over an image
_MEGABYTE = 1 << 20


def preferred(x: tuple[int, ...], *, depthwise: bool, single: bool) -> str:
    """What the name of an implementation should start with; "" for oneDNN's choice.

    Args:
        x: the shape of the input, channels last.
        single: input and output are float32.
    """
    if not (depthwise and single) or math.prod(x[1:-1]) < _SMALL:
        return ""
    # brdgmm_dw, which comes first, goes row by row; jit_dw channels by channels, over images that stay in the cache
    image = 4 * math.prod(x[1:])
    if x[-1] <= _FEW or image <= (2 * _MEGABYTE if x[0] == 1 else _MEGABYTE):
        return "jit_dw:avx512_core"
    return ""
