"""Names for what flows between kernels."""

from __future__ import annotations

from typing import Any

#: A numpy (or cupy) array. Kernels are generic over dtypes, which numpy's own annotations cannot say, so the
#: checker is told nothing rather than something false.
Array = Any
