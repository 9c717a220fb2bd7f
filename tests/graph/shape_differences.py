"""Hostile single ops whose outcome before a run differs from TensorFlow's.

    python -m tests.graph.shape_differences --seed 1 --count 1000 [--op Conv2D]

A line each: the kind, the op, seed and number, what TensorFlow says, what we say. Where TensorFlow dies there is none.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

from tests.fuzz import single_ops  # the variables have to be there before TensorFlow
from tests.graph.shape_outcomes import difference, ours, theirs

_BATCH = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--op", action="append")
    options = parser.parse_args()
    import tensorflow as tf

    def judged(case: single_ops.Case) -> tuple[str, str]:
        mine, wanted = ours(case.graph), theirs(tf, case.graph)
        kind = difference(mine, wanted) or "same"
        said = [str(o.said or [str(s) for s in o.shapes or ()]) for o in (wanted, mine)]
        return kind, json.dumps(said)

    source = single_ops.cases(options.seed, options.op)
    counts: Counter[str] = Counter()
    left: Any = options.count
    while left > 0:
        batch = [next(source) for _ in range(min(_BATCH, left))]
        left -= len(batch)
        for case, kind, said in single_ops.in_children(batch, judged, 0):
            counts[kind] += 1
            if kind in ("accepted", "refused", "shape"):
                print(kind, case.name, said, flush=True)
    print(f"{options.count} cases: {dict(counts)}")


if __name__ == "__main__":
    main()
