"""Whether a model that was made of another one computes the same."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolkit.errors import UsageError, about_option, did_you_mean
from toolkit.formats.arrays import read_arrays
from toolkit.formats.model import Model, ModelKind
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.graph.summary import likely_outputs
from toolkit.graph.tensorref import parse_tensor
from toolkit.runtime.compare import Comparison
from toolkit.runtime.job import compare_models
from toolkit.runtime.options import RunOptions
from toolkit.runtime.request import public_signatures

#: what sizes that are not known become: the first, and any other
_FIRST, _OTHER = 2, 3


def verify_models(
    before: Model,
    after: Model,
    feeds: str,
    fetches: Sequence[str] = (),
    *,
    checkpoint: str | None = None,
    seed: int = 1,
    rtol: float,
    atol: float,
) -> Comparison:
    """Run two models on the same feeds and compare what they compute.

    Args:
        feeds: "random", or a file of arrays by tensor name.
        fetches: tensors; by default the outputs of all signatures, else what looks like outputs.
        checkpoint: variables of both; by default they are initialised where there is an initialiser.
        seed: of random feeds.

    Raises:
        UsageError: there is nothing to compare; a feed is not in the model.
        GraphmillError: see `Session.run`.
    """
    meta = before.meta
    wanted = list(fetches)
    if not wanted:
        keys = public_signatures(meta)
        wanted = [tensor for key in keys for tensor in meta.signatures[key].output_tensors().values()]
    wanted = list(dict.fromkeys(wanted or likely_outputs(meta)))
    wanted = [name for name in wanted if meta.graph.output(parse_tensor(name)).node.num_outputs]
    if not wanted:
        raise UsageError("there is nothing to compare: name a tensor with --fetch")
    with about_option("--verify"):
        given = random_feeds(before, wanted, seed) if feeds == "random" else _file_feeds(before, feeds)
    initialised = any(meta.collections.get(key) for key in (GraphKeys.INIT_OP, GraphKeys.GLOBAL_VARIABLES))
    init = checkpoint is None and before.kind is not ModelKind.SAVED_MODEL and initialised
    options = RunOptions(feeds=given, fetches=wanted, checkpoint=checkpoint, init=init)
    return compare_models(before, after, options, rtol=rtol, atol=atol, find_first=False)


def _file_feeds(model: Model, file: str) -> dict[str, Any]:
    arrays = read_arrays(file)
    for name in arrays:
        if parse_tensor(name).node not in model.graph:
            placeholders = [node.name for node in model.graph if node.op.startswith("Placeholder")]
            raise UsageError(f"there is no '{name}' in the model{did_you_mean(name, placeholders)}")
    return dict(arrays)


def random_feeds(model: Model, fetches: Sequence[str], seed: int) -> Mapping[str, Any]:
    """A value for every placeholder that some tensors need, the same for the same seed whatever else is fed.

    Numbers are normal, whole numbers 0 or 1, which are in range wherever anything is, texts single letters; sizes that
    are not known are 2 at the front and 3 elsewhere.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()
    stack = [model.graph.output(parse_tensor(name)).node for name in fetches]
    while stack:
        node = stack.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.op in ("Placeholder", "PlaceholderV2"):
            shape = node.attr("shape")
            found[f"{node.name}:0"] = random_array(Output(node, 0).dtype, shape, zlib.crc32(node.name.encode()) + seed)
        stack += [source for source, _ in node.inputs] + node.control_inputs
    return found


def random_array(dtype: DType, shape: Shape, seed: int) -> Any:
    """An array of a type and of a shape whose unknown sizes are chosen."""
    generator = np.random.default_rng(seed)
    dims = [(_OTHER if i else _FIRST) if size is None else size for i, size in enumerate(shape.dims or ())]
    match dtype.base.kind:
        case "f" | "c":
            return generator.normal(size=dims).astype(dtype.base.numpy)
        case "b":
            return generator.integers(0, 2, dims).astype(np.bool_)
        case "s":
            letters = np.array([b"a", b"b", b"c"], object)
            return letters[generator.integers(0, 3, dims)] if dims else np.array(b"a", object)
        case _:
            return generator.integers(0, 2, dims).astype(dtype.base.numpy)
