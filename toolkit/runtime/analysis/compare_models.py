"""Two models run once on the same feeds, and what they compute compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.formats.models.model import Model
from toolkit.runtime.analysis.compare import Comparison, Contract, bisect, compare_results
from toolkit.runtime.jobs.job import Job
from toolkit.runtime.jobs.option_checks import check_options
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.request import Request
from toolkit.runtime.jobs.wishes import request_of
from toolkit.runtime.saving.saver import Saver, variable_nodes
from toolkit.runtime.session import Session
from toolkit.runtime.training.scaffold import Scaffold


def compare_models(
    first: Model,
    second: Model,
    options: RunOptions,
    *,
    rtol: float,
    atol: float,
    find_first: bool,
    log: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Run two models once on the same feeds and compare what they compute, tensor by tensor.

    Args:
        find_first: also look for the first tensor, in the order of computation, in which they differ.
        log: takes one line of what should be known beside the result.

    Raises:
        GraphmillError: see `run_model`.
    """
    check_options(options, comparing=True)
    results: list[dict[str, Any]] = []
    sessions: list[Session] = []
    requests: list[Request] = []
    try:
        for model, other in ((first, second), (second, first)):
            try:
                told = _told(model, other, options)
                request = request_of(model, told, ())
                session, _ = Job(model, told, request, log).create()
                sessions.append(session)
                requests.append(request)
                values = session.run(list(request.fetches.values()), request.feeds)
            except GraphmillError as error:
                error.file = error.file or str(model.source)  # an option's too: one of two models does not have it
                raise
            results.append(dict(zip(request.fetches, values, strict=True)))
        contract = Contract(rtol, atol, options.precision)
        comparison = Comparison(compare_results(results[0], results[1], rtol=rtol, atol=atol), contract=contract)
        if find_first and comparison.differences:
            feeds = {output.name: value for output, value in requests[0].feeds.items()}
            names = [output.name for output in requests[0].fetches.values()]
            found = bisect(sessions[0], sessions[1], feeds, names, rtol=rtol, atol=atol)
            if found is not None:
                comparison.first, comparison.compared = found
        return comparison
    finally:
        for session in sessions:
            session.close()


def _told(model: Model, other: Model, options: RunOptions) -> RunOptions:
    """What one of two models that are compared is told: a frozen one has nothing that the other's state could go to."""
    if _keeps_state(model) or not _keeps_state(other):
        return options
    return replace(options, checkpoint=None, init=False)


def _keeps_state(model: Model) -> bool:
    scaffold = Scaffold.of(model.meta, Saver(model.meta))
    restorable = model.meta.saver is not None or bool(variable_nodes(model.graph))
    return restorable or bool(scaffold.init_ops or scaffold.local_init_ops)
