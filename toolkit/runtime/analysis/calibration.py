"""Ranges of tensors, measured while a graph runs on calibration data: what `quantize_static` rounds to 8 bits in."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.errors import UsageError, about_option, did_you_mean
from toolkit.formats.arrays.given import read_array, read_arrays
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.graph.tensorref import parse_tensor
from toolkit.kernels.types import Array
from toolkit.passes.pruning.prune import need
from toolkit.policy.rules import Policy
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.feeds import feed_array, placeholder_shape

#: rows that run together where an input leaves their number open: enough for products to be large, and little memory
#: for the tensors that are looked at (ResNet-50, images of 224 x 224: 100 MB for each)
_ROWS = 4
#: parts of a range in which numbers are counted: 16 for each of the 256 steps that it becomes
_BINS = 4096
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


def read_calibration(file: str, policy: Policy | None = None) -> Calibration:
    """The data of a file.

    Args:
        file: FILE.npz with an array for each input, by its name; or an array of the only input: FILE.npy,
            FILE.npz:KEY and whatever else `toolkit.formats.arrays.given.read_array` takes.
        policy: as of `Calibration`.

    Raises:
        GraphmillError: the file cannot be read.
    """
    found = read_arrays(file) if file.lower().endswith(".npz") else read_array(file)
    return Calibration(found, file, policy)


@dataclass(frozen=True)
class Calibration:
    """Data that a graph is run on, so that ranges can be measured.

    Attributes:
        arrays: an array for each input, by its name, others beside them; or the array of the only input. The first
            axis counts rows where an input leaves its size open, or where an array has a whole multiple of its size.
        file: where they are from, for messages.
        policy: what the graph may touch while it runs; None: everything.
    """

    arrays: Mapping[str, Array] | Array
    file: str
    policy: Policy | None = None

    def measure(self, graph: Graph, tensors: Sequence[str], percentile: float | None) -> dict[str, tuple[float, float]]:
        """The range of each tensor, over all rows.

        Args:
            percentile: how many of the numbers lie in it, in percent, to within 1/4096 of the whole range; as many are
                left out on both sides. None: all of them.

        Returns:
            by tensor, (least, largest); (0, 0) of one without numbers, NaN where there was one.

        Raises:
            UsageError: an input has no array, or one that does not fit it; there is nothing in the arrays.
            GraphmillError: a step fails.
        """
        with about_option("--calibrate"):
            feeds = self._feeds(graph, tensors)
            steps = _steps(feeds, self.file)
        ranges: dict[str, tuple[float, float]] = {}
        with Session(graph, policy=self.policy) as session:
            for name, values in _seen(session, tensors, steps):
                ranges[name] = _joined(ranges.get(name), values)
            if percentile is None:
                return {name: ranges.get(name, (0.0, 0.0)) for name in tensors}
            counts = {name: np.zeros(_BINS, np.int64) for name in tensors}
            for name, values in _seen(session, tensors, steps):
                if np.isfinite(ranges[name]).all():
                    # in float32 a range may be too wide, or too narrow for so many parts
                    counts[name] += np.histogram(values.astype(np.float64), _BINS, ranges[name])[0]
        return {name: _narrowed(counts[name], ranges.get(name, (0.0, 0.0)), percentile) for name in tensors}

    # -- feeds -----------------------------------------------------------------------------------------------------

    def _feeds(self, graph: Graph, tensors: Sequence[str]) -> dict[Output, Array]:
        """An array for each input that the tensors need."""
        needed = need(graph, (), tuple(tensors), ()).ids
        inputs = [node for node in graph if node.id in needed and node.op.startswith("Placeholder")]
        wanted = [node.name for node in inputs if node.op in _PLACEHOLDERS]
        if not isinstance(self.arrays, Mapping):
            if len(wanted) != 1:
                raise UsageError(
                    f"{self.file} is one array, and the network has {len(wanted)} inputs"
                    + (f" ({', '.join(wanted)}): give FILE.npz with an array for each" if wanted else "")
                )
            return {Output(graph.node(wanted[0]), 0): self.arrays}
        feeds: dict[Output, Array] = {}
        for node in inputs:
            found = [key for key in self.arrays if _input_of(key) == node.name]
            if len(found) > 1:
                raise UsageError(f"{self.file} has several arrays for the input '{node.name}': {', '.join(found)}")
            if found:
                feeds[Output(node, 0)] = self.arrays[found[0]]
            elif node.name in wanted:
                others = [key for key in self.arrays if _input_of(key) not in graph]
                near = did_you_mean(node.name, others, then=f"it has {', '.join(self.arrays) or 'none'}")
                raise UsageError(f"{self.file} has no array for the input '{node.name}'{near}")
        return feeds


def _input_of(key: str) -> str | None:
    """The node that an array is for by its name; None where that names no input: whatever else is kept beside them."""
    try:
        ref = parse_tensor(key)
    except UsageError:
        return None
    return None if ref.index else ref.node


def _steps(feeds: Mapping[Output, Array], file: str) -> list[dict[str, Array]]:
    """The feeds of each step: rows of all inputs, a few at a time; what has no rows is the same in each."""
    parts = {output: _parts(output, array, file) for output, array in feeds.items()}
    count = max((len(each) for each in parts.values()), default=1)
    longest = [output for output, each in parts.items() if len(each) == count]
    # rows of the last step, of inputs that take any number of them
    ends = {output: len(each[-1]) for output, each in parts.items() if len(each) > 1 and _is_open(output)}
    for output, each in parts.items():
        for other in longest:
            is_even = len(each) == count and (output not in ends or ends[output] == ends.get(other, ends[output]))
            if len(each) > 1 and not is_even:
                raise UsageError(
                    f"{file} has {len(feeds[output])} rows for '{output.node.name}' and {len(feeds[other])} for "
                    f"'{other.node.name}'; expected as many for each input"
                )
    return [{output.name: each[index % len(each)] for output, each in parts.items()} for index in range(count)]


def _is_open(output: Output) -> bool:
    """Whether an input takes any number of rows."""
    dims = placeholder_shape(output).dims
    return dims is None or (dims != () and dims[0] is None)


def _parts(output: Output, array: Array, file: str) -> list[Array]:
    """An array in pieces that fit an input."""
    shape = placeholder_shape(output)
    if np.ndim(array) == 0 or shape.dims == ():
        return [feed_array(output, array)]
    rows, size = len(array), None if shape.dims is None else shape.dims[0]
    if shape.dims is not None and not shape.is_compatible_with(Shape((size, *array.shape[1:]))):
        raise UsageError(
            f"{file} has an array of shape {Shape(array.shape)} for '{output.node.name}', which has shape {shape}"
        )
    if not rows:
        raise UsageError(f"{file} has no rows for '{output.node.name}'")
    if size is not None and (not size or rows % size):
        raise UsageError(f"{file} has {rows} rows for '{output.node.name}', which takes {size} at a time")
    size = size or _ROWS
    return [feed_array(output, array[start : start + size]) for start in range(0, rows, size)]


# -- ranges --------------------------------------------------------------------------------------------------------


def _seen(
    session: Session, tensors: Sequence[str], steps: Sequence[Mapping[str, Array]]
) -> Iterator[tuple[str, Array]]:
    """What each tensor is in each step, as far as there is anything in it."""
    for feeds in steps:
        for name, values in zip(tensors, session.run(list(tensors), feeds), strict=True):
            if values.size:
                yield name, values


def _joined(seen: tuple[float, float] | None, values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    # numpy's minimum hands NaN on
    return (low, high) if seen is None else (float(np.minimum(seen[0], low)), float(np.maximum(seen[1], high)))


def _narrowed(counts: Array, ends: tuple[float, float], percentile: float) -> tuple[float, float]:
    """The range that leaves the rarest numbers out, on both sides."""
    total = counts.sum()
    if not total:
        return ends
    left_out = total * (100 - percentile) / 200
    before = np.cumsum(counts)
    edges = np.linspace(*ends, _BINS + 1)
    first = int(np.searchsorted(before, left_out, side="right"))
    last = int(np.searchsorted(before, total - left_out, side="left"))
    return float(edges[min(first, _BINS - 1)]), float(edges[min(last, _BINS - 1) + 1])
