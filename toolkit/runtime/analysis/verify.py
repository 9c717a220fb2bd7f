"""Whether a model that was made of another one computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.errors import UsageError, about_option, did_you_mean
from toolkit.formats.arrays.given import read_arrays
from toolkit.formats.models.model import Model, ModelKind
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.node import Output
from toolkit.graph.summary import likely_outputs
from toolkit.graph.tensorref import parse_tensor
from toolkit.passes.pruning.prune import need
from toolkit.runtime.analysis.compare import Comparison
from toolkit.runtime.analysis.compare_models import compare_models
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.random_feeds import RandomFeed, UnknownShapeError, load_random_feeds
from toolkit.runtime.jobs.request import public_signatures
from toolkit.runtime.sessions.feeds import placeholder_shape

#: what sizes that are not known become: the first, and any other
_FIRST, _OTHER = 2, 3
#: floats are drawn on both sides of 0, where activations differ
_LOW = -1.0


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
        feeds: "random" (see `runtime.jobs.random_feeds`; unknown sizes are 2 at the front and 3 elsewhere, so that
            sums and broadcasts are seen), or a file of arrays by tensor name, which may hold others beside them.
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
        given = _random_feeds(before, wanted, seed) if feeds == "random" else _file_feeds(before, feeds, wanted)
    initialised = any(meta.collections.get(key) for key in (GraphKeys.INIT_OP, GraphKeys.GLOBAL_VARIABLES))
    init = checkpoint is None and before.kind is not ModelKind.SAVED_MODEL and initialised
    options = RunOptions(feeds=given, fetches=wanted, checkpoint=checkpoint, init=init)
    return compare_models(before, after, options, rtol=rtol, atol=atol, find_first=False)


def _file_feeds(model: Model, file: str, fetches: Sequence[str]) -> dict[str, Any]:
    """The arrays of a file that the model has tensors for; others are passed over where nothing lacks a value."""
    arrays = dict(read_arrays(file))
    placeholders = [node.name for node in model.graph if node.op.startswith("Placeholder")]
    needed = need(
        model.graph, tuple(name for name in arrays if parse_tensor(name).node in placeholders), fetches, ()
    ).ids
    lacking = [name for name in placeholders if model.graph.node(name).id in needed and _has_no_default(model, name)]
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        if parse_tensor(name).node in model.graph:
            found[name] = array
        elif lacking:  # it may be meant by this one; others are results that somebody keeps beside the feeds
            inputs = f" (its inputs: {', '.join(placeholders)})" if placeholders else ""
            raise UsageError(
                f"{file}: the array '{name}' is no tensor of the model{did_you_mean(name, placeholders)}{inputs}"
            )
    return found


def _has_no_default(model: Model, name: str) -> bool:
    return model.graph.node(name).op != "PlaceholderWithDefault"


def _random_feeds(model: Model, fetches: Sequence[str], seed: int) -> dict[str, Any]:
    """A value for every placeholder that some tensors need, the same for the same seed whatever else is fed."""
    graph = model.graph
    needed = need(graph, (), tuple(fetches), ()).ids
    feeds: dict[Output, Any] = {}
    for node in graph:
        if node.id in needed and node.op in ("Placeholder", "PlaceholderV2"):
            output = Output(node, 0)
            is_setting = placeholder_shape(output).dims == ()  # keep_prob, a rate: in [0, 1)
            feeds[output] = RandomFeed(seed, low=_LOW if output.dtype.is_floating and not is_setting else None)
    try:
        found = load_random_feeds(feeds, _FIRST, _OTHER)
    except UnknownShapeError as error:
        raise UsageError(
            f"nothing is known of the shape of '{error.tensor}'; give values: --verify FEEDS.npz"
        ) from None
    return {output.name: value for output, value in found.items()}
