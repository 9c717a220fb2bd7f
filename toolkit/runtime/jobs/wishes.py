"""What a run asks of a model, from its options."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.errors import GraphError, about_option
from toolkit.formats.models.model import Model
from toolkit.graph.partitioned import first_lone_receive
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.random_feeds import load_random_feeds
from toolkit.runtime.jobs.record_feeds import load_record_feeds
from toolkit.runtime.jobs.request import Request, resolve


def request_of(model: Model, options: RunOptions, targets: Sequence[str]) -> Request:
    """What a run fetches, runs and feeds, by the graph's tensors.

    Raises:
        UsageError: a name is none of the graph's, or a feed cannot be read.
        GraphError: the graph is a part of one.
    """
    request = resolve(
        model.meta, feeds=options.feeds, fetches=options.fetches, targets=targets, signature=options.signature,
        init_ops=options.init_ops,
    )  # fmt: skip
    alone = first_lone_receive(model.graph, [*(output.node for output in request.fetches.values()), *request.targets])
    if alone is not None:
        raise GraphError(
            f"it waits for '{alone.text('tensor_name')}' from {alone.text('send_device')}, which another part of the "
            "graph sends; run the folder of the parts, or join them: graphmill partition --join DIR",
            node=alone.name,
        )
    with about_option("--feed"):
        request.feeds = load_random_feeds(load_record_feeds(request.feeds), options.batch)
    return request
