# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""One evaluation of a checkpoint: steps until the input ends or so many are done, then the metrics' values."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from schemas import summary_pb2
from toolkit.client.arrays import array_ops
from toolkit.client.construction import context
from toolkit.client.construction.convert import tensor_proto
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.metrics.means import mean
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators.spec import EstimatorSpec
from toolkit.tensorflow.families.train.monitored import ChiefSessionCreator, MonitoredSession
from toolkit.tensorflow.families.train.saving_hooks import FileWriterCache
from toolkit.tensorflow.families.train.session_hooks import (
    FinalOpsHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
)

_EVAL_STEP = "eval_step"


def eval_step() -> Any:
    """The local variable that counts the steps of an evaluation."""
    found = context.get_default_graph().get_collection(_EVAL_STEP)
    if found:
        return found[0]
    return get_variable(
        "eval_step", [], dtypes.int64, initializers.Zeros(), trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, _EVAL_STEP],
    )  # fmt: skip


class StopAfterEvals(SessionRunHook):
    """Ends an evaluation after so many steps."""

    def __init__(self, count: int):
        self._count = count
        self.done: Any = None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self.done)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        log().info("evaluated %d of %d steps", run_values.results, self._count)
        if run_values.results >= self._count:
            run_context.request_stop()


class Evaluation(NamedTuple):
    """An evaluation in a graph: how its session starts, what is run, what comes out, and who watches."""

    scaffold: Any
    update_op: Any
    values: dict[str, Any]
    hooks: list[Any]


def evaluation_hooks(steps: Any, hooks: Any) -> list[Any]:
    """Those that are given, and the one that ends an evaluation after `steps`."""
    found = checked_items(hooks, SessionRunHook, "hooks")
    if steps is not None:
        if steps <= 0:
            raise ValueError(f"steps must be above 0; got {steps}")
        found.append(StopAfterEvals(steps))
    return found


def checked_items(items: Any, kind: type, what: str) -> list[Any]:
    """A list of what is given. Raises TypeError where something is not of `kind`."""
    found = list(items or ())
    for item in found:
        if not isinstance(item, kind):
            raise TypeError(f"{what} must be of {kind.__name__}; got {item!r}")
    return found


def with_loss(spec: EstimatorSpec) -> tuple[Any, dict[str, Any]]:
    """One operation that updates all metrics, and their values, the mean loss among them."""
    metrics = dict(spec.eval_metric_ops)
    for name in ("loss", GraphKeys.GLOBAL_STEP):
        if name in metrics:
            raise ValueError(f"a metric is called '{name}', which every evaluation has already")
    metrics["loss"] = mean(spec.loss)
    updates = [metrics[name][1] for name in sorted(metrics)]
    return group([each.op if hasattr(each, "op") else each for each in updates]), {
        name: metrics[name][0] for name in sorted(metrics)
    }


def evaluate_once(
    checkpoint: Any, scaffold: Any, update_op: Any, values: dict[str, Any], hooks: list[Any], config: Any
) -> dict[str, Any]:
    """Restore a checkpoint (None: initialise), run `update_op` until the input ends; returns the values."""
    step = eval_step()
    hooks = list(hooks)
    updates: list[Any] | None = None
    if update_op is not None:
        updates = [update_op, step.assign_add(1, use_locking=True)]
        with control_dependencies(updates):
            done = array_ops.identity(step.read_value())
        for hook in hooks:
            if isinstance(hook, StopAfterEvals):
                hook.done = done
    final = FinalOpsHook(values)
    creator = ChiefSessionCreator(scaffold, checkpoint_filename_with_path=checkpoint, config=config)
    with MonitoredSession(creator, [*hooks, final]) as session:
        while updates is not None and not session.should_stop():
            session.run(updates)
    return final.final_ops_values


def write_values(folder: str, values: dict[str, Any], step: int, checkpoint: str | None) -> None:
    """Write the values of an evaluation as summaries of its global step, and which checkpoint they are of."""
    writer = FileWriterCache.get(folder)
    found = summary_pb2.Summary()
    for key, value in values.items():
        if value is None or key == GraphKeys.GLOBAL_STEP:
            continue
        if isinstance(value, float | int | np.floating | np.integer):
            found.value.add(tag=key, simple_value=float(value))
        elif isinstance(value, bytes):
            for position, each in enumerate(summary_pb2.Summary.FromString(value).value):
                each.tag = f"{key}/{position}"
                found.value.append(each)
        elif isinstance(value, np.ndarray):
            entry = found.value.add(tag=key, node_name=key)
            entry.tensor.CopyFrom(tensor_proto(value))
        else:
            log().warning("the metric '%s' is %s, which no summary holds", key, type(value).__name__)
    writer.add_summary(found, step)
    if checkpoint:
        entry = summary_pb2.Summary()
        entry.value.add(tag="checkpoint_path").tensor.CopyFrom(tensor_proto(os.fspath(checkpoint)))
        writer.add_summary(entry, step)
    writer.flush()
