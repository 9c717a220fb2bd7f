"""Whether what two engines computed is the same, before their times are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests import tolerance
from tests.bench.agreement import LEAST_COSINE
from tests.bench.cuda.workloads import CudaWorkload

#: half of the distance from 1 to the next number, of the factors of products: TF32 keeps 10 bits behind the point
UNITS = {"f32": tolerance.unit(np.float32), "tf32": 2.0**-11, "bf16": 2.0**-8, "fp16": 2.0**-11, "fp8": 2.0**-4}
#: numbers that are added up in float32 in a product, at most: 3 x 3 x 512, or 4 x 768
_SUMMED = 2**12


def allowed(workload: CudaWorkload) -> float:
    """How far outputs, or losses, may be apart, in parts of their size.

    Errors of layers are independent of each other, and so grow with the root of their number; in each there are those
    of both factors and of the result, in two engines, and what products in float32 add up to. Twice that: what lies
    between products (norms, functions) is not counted.
    """
    rounded = math.sqrt(2 * 3) * UNITS[workload.precision]
    summed = math.sqrt(2) * tolerance.likely(_SUMMED)
    return 2 * math.sqrt(workload.network.depth) * (rounded + summed)


def disagreement(workload: CudaWorkload, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """What is different, or ""; sizes are those of vectors, changes by training point the same way."""
    far = allowed(workload)
    for key in ("output", "losses"):
        if key not in theirs:
            continue
        ours, wanted = (each[key].astype(np.float64).ravel() for each in (mine, theirs))
        if ours.shape != wanted.shape:
            return f"{key}: {ours.size} numbers, not {wanted.size}"
        if not (np.isfinite(ours).all() and np.isfinite(wanted).all()):
            return f"{key}: not finite"
        apart = float(np.linalg.norm(ours - wanted) / max(np.linalg.norm(wanted), 1e-30))
        if apart > far:
            return f"{key}: {apart:.1e} of their size apart, {far:.1e} allowed"
    if "change" in theirs:
        ours, wanted = (each["change"].astype(np.float64).ravel() for each in (mine, theirs))
        sizes = float(np.linalg.norm(ours) * np.linalg.norm(wanted))
        alike = float(ours @ wanted) / sizes if sizes else 0.0
        if not alike >= LEAST_COSINE:
            return f"weights change otherwise: cosine {alike:.2f}"
    return ""


def apart(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> float:
    """The distance of outputs or losses, in parts of their size."""
    key = "output" if "output" in theirs else "losses"
    ours, wanted = (each[key].astype(np.float64).ravel() for each in (mine, theirs))
    return float(np.linalg.norm(ours - wanted) / max(np.linalg.norm(wanted), 1e-30))
