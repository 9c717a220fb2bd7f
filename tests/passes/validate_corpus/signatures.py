"""Rows about signatures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.passes.validate_corpus.rows import both, row
from tests.passes.validate_corpus.variables import intact
from tests.passes.validate_graphs import (
    F,
    I,
    info,
    meta,
    saved,
)
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


def signature(message: Any) -> Any:
    owner = message.meta_graphs[0] if hasattr(message, "meta_graphs") else message
    return owner.signature_def["serving_default"]


def say(side: str, key: str, name: str, dtype: Any = F, shape: Shape = Shape(None)) -> Callable[[Any], None]:
    return lambda m: info(getattr(signature(m), side), key, name, dtype, shape)


row("an input that is gone", "signatures/tensor", saved, say("inputs", "x", "input:0"))
row("an output that is gone", "signatures/tensor", meta, say("outputs", "y", "yy:0"))
row("an output of no index", "signatures/tensor", meta, say("outputs", "y", "y:3"), "y")
row("an input without a tensor", "signatures/tensor", saved, lambda m: say("inputs", "x", "")(m))
row("an input of another type", "signatures/dtype", meta, say("inputs", "x", "x:0", I), "x")
row("an output of another type", "signatures/dtype", saved, say("outputs", "y", "y:0", dtypes.float64), "y")
row("an input of another shape", "signatures/shape", meta, say("inputs", "x", "x:0", F, Shape([None, 5])), "x")
row("an output of another rank", "signatures/shape", saved, say("outputs", "y", "y:0", F, Shape([None])), "y")
row("no outputs", "signatures/no-outputs", saved, lambda m: signature(m).outputs.pop("y"))
row("no signatures", "signatures/none", saved, lambda m: m.meta_graphs[0].signature_def.pop("serving_default"))
row("a signature of garbage", "signatures/malformed", meta, lambda m: setattr(signature(m).inputs["x"], "dtype", 77))


def earlier(change: Callable[[Any], object] = intact) -> Callable[[Path], list[str]]:
    def args(folder: Path) -> list[str]:
        message = meta()
        change(message)
        (folder / "earlier.pb").write_bytes(message.SerializeToString())
        return ["--compatible-with", str(folder / "earlier.pb")]

    return args


row("a signature renamed", "signatures/removed", meta, intact,
    args=earlier(lambda m: m.signature_def["predict"].CopyFrom(signature(m))))  # fmt: skip
row(
    "an input renamed",
    "signatures/input",
    meta,
    intact,
    args=earlier(both(say("inputs", "features", "x:0", F, Shape([None, 4])), lambda m: signature(m).inputs.pop("x"))),
)
row("an input more", "signatures/input", meta, say("inputs", "p", "w/read:0", F, Shape([4, 2])), args=earlier())
row("an input with another type", "signatures/input", meta, intact,
    args=earlier(say("inputs", "x", "x:0", I, Shape([None, 4]))))  # fmt: skip
row("an input that takes less", "signatures/input", meta, say("inputs", "x", "x:0", F, Shape([1, 4])), args=earlier())
row("an output less", "signatures/output", meta, intact, args=earlier(say("outputs", "z", "y:0", F)))
row("an output with another type", "signatures/output", meta, intact, args=earlier(say("outputs", "y", "y:0", I)))
row("an output of more shapes", "signatures/output", meta, intact,
    args=earlier(say("outputs", "y", "y:0", F, Shape([7, 2]))))  # fmt: skip
