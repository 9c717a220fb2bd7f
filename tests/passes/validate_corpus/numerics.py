"""Rows about numbers, sizes, budgets, and what gives the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.passes.validate_corpus.rows import ROWS, Row, both, inside, put, row
from tests.passes.validate_corpus.shapes import replace_const
from tests.passes.validate_corpus.variables import intact
from tests.passes.validate_graphs import (
    F,
    I,
    add,
    calls,
    const,
    net,
    node,
    saved,
    tensor,
    weights,
)
from toolkit.graph import dtypes

# -- numerics --------------------------------------------------------------------------------------------

for rule, number in (
    ("nan", float("nan")),
    ("infinity", float("inf")),
    ("infinity", float("-inf")),
    ("denormal", 1e-40),
):
    row(f"a bias of {number}", f"numerics/{rule}", net, replace_const("conv/bias", [number], [4]), "conv/bias")

    def large(g: Any, number: float = number) -> None:
        value = node(g, "dense/kernel").attr["value"].tensor
        array = np.frombuffer(value.tensor_content, np.float32).copy()
        array[1234] = number
        value.tensor_content = array.tobytes()

    row(f"a weight of {number}", f"numerics/{rule}", net, large, "dense/kernel")
row("NaN in a function", "numerics/nan", calls,
    inside("test", put("limit", "value", tensor([float("nan")], []))), "limit")  # fmt: skip


def half(g: Any) -> None:
    proto = tensor([], [2])
    proto.dtype = dtypes.float16.enum
    proto.half_val.extend([0x7E00, 0x3C00])
    add(g, "Const", "half", dtype=dtypes.float16, value=proto)


row("NaN in half precision", "numerics/nan", net, half, "half")

# -- size, budgets, coverage -----------------------------------------------------------------------------

row(
    "the same weights twice",
    "size/duplicate-constants",
    net,
    lambda g: weights(g, "copy", [256, 10], 0.5),
    "dense/kernel",
)


def huge(folder: Path) -> list[str]:
    path = folder / "huge.pb"
    path.write_bytes(net().SerializeToString())
    with path.open("r+b") as file:
        file.truncate(2**31)  # sparse: it takes no room
    return [str(path)]


ROWS.append(Row("a file of 2 GiB", "size/limit", "", huge))
row("too many nodes", "budgets/nodes", net, intact, args=["--max-nodes", "10"])
row("too many nodes in functions", "budgets/nodes", calls, intact, args=["--max-nodes", "8"])
row("too many parameters", "budgets/params", net, intact, args=["--max-params", "2k"])
row("too many parameters in variables", "budgets/params", saved, intact, args=["--max-params", "9"])
row("too many operations", "budgets/flops", net, intact, args=["--max-flops", "1e4"])
row("operations that cannot be counted", "budgets/flops-unknown", net,
    lambda g: (add(g, "Placeholder", "any", dtype=dtypes.float32), add(g, "Neg", "neg", ["any"], T=dtypes.float32)),
    args=["--max-flops", "1e15"])  # fmt: skip
row("too many bytes", "budgets/bytes", net, intact, args=["--max-bytes", "1000"])
row("an op without a kernel", "coverage/no-kernel", net,
    lambda g: add(g, "TPUReplicateMetadata", "tpu", num_replicas=1), "tpu", ["--runs-on", "CPU"])  # fmt: skip
row(
    "no kernel in a function",
    "coverage/no-kernel",
    calls,
    inside("negative", lambda f: add(f, "TPUReplicateMetadata", "tpu", num_replicas=1)),
    "tpu",
    ["--runs-on", "CPU"],
)

# -- reproducibility -------------------------------------------------------------------------------------

for name in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    row(f"{name} without a seed", "reproducibility/unseeded", net,
        lambda g, name=name: add(g, name, "random", ["flat/shape"], T=I, dtype=F), "random")  # fmt: skip
row(
    "no seed in a function",
    "reproducibility/unseeded",
    calls,
    inside(
        "negative",
        both(
            lambda f: const(f, "two", [2], [1], I),
            lambda f: add(f, "RandomUniform", "random", ["two:output:0"], T=I, dtype=F),
        ),
    ),
    "random",
)
row("the time", "reproducibility/clock", net, lambda g: add(g, "Timestamp", "now"), "now")
