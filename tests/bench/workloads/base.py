"""What one row of the benchmark runs: a model, feeds drawn anew for every run, what to fetch, the ratios to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests import tolerance
from tests.models import Built

#: draws the feeds of one run, by the labels of the model's inputs
Feeds = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Target:
    """A ratio (ours / peer) to reach beside the fastest of some peers, in one precision of theirs."""

    peers: tuple[str, ...]
    ratio: float


@dataclass(frozen=True)
class Workload:
    """One row.

    Attributes:
        name: unique; what the row is called.
        suite: the suite it belongs to.
        model: builds the model, or finds it in the cache. Its `info` has "inputs" and "outputs" (label to tensor
            name), and, for a MetaGraph that trains, "init" and "train" (operation names).
        feeds: given a numpy Generator, the arrays of one run, by input label.
        targets: what is to be reached.
        precision: "f32" or "bf16"; the peers run in the same.
        call: "run" for Session.run, "callable" for make_callable.
        repeat: how often one timed run runs the step; more than once where a step takes microseconds.
        rtol: how far outputs may be from TensorFlow's float32; see `tests.bench.agreement`.
        onnx_shapes: the shapes of the inputs, for peers that take ONNX; empty: it is not converted.
        work: operations and least bytes of a step, where static shapes do not tell (loops, gathered rows).
    """

    name: str
    suite: str
    model: Callable[[], Built]
    feeds: Feeds
    targets: tuple[Target, ...]
    precision: str = "f32"
    call: str = "run"
    repeat: int = 1
    #: two engines, each with up to 256 layers in a row of sums of up to 2^12 products, whose errors are independent
    rtol: float = 2 * 256**0.5 * tolerance.likely(2**12)
    onnx_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    work: tuple[float, float] | None = None

    @property
    def peers(self) -> tuple[str, ...]:
        """Every peer that a target names, TensorFlow first."""
        return tuple(dict.fromkeys(name for target in self.targets for name in target.peers))


def tensorflow(ratio: float) -> tuple[Target, ...]:
    """At most `ratio` of TensorFlow's time."""
    return (Target(("tensorflow",), ratio),)
