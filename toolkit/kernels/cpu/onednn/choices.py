"""Which implementation of a convolution is faster where oneDNN's own choice, the first that fits, is not.

Measured with oneDNN 3.2 on a processor with AVX-512 over the layers of MobileNetV2, EfficientNetB0 and ResNet50.
"""

from __future__ import annotations

import math

from toolkit.target.thresholds import PrimitiveThresholds


def preferred(x: tuple[int, ...], sizes: PrimitiveThresholds, *, depthwise: bool, single: bool) -> str:
    """What the name of an implementation should start with; "" for oneDNN's choice.

    Args:
        x: the shape of the input, channels last.
        single: input and output are float32.
    """
    if not (depthwise and single) or math.prod(x[1:-1]) < sizes.depthwise_pixels:
        return ""
    # brdgmm_dw, which comes first, goes row by row; jit_dw channels by channels, over images that stay in the cache
    image = 4 * math.prod(x[1:])
    if x[-1] <= sizes.depthwise_channels or image <= sizes.depthwise_image * (2 if x[0] == 1 else 1):
        return "jit_dw:avx512_core"
    return ""
