"""From a loss to the operation of a training step: gradients clipped, multiplied, summarized, updates run before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.flow import control_flow
from toolkit.client.math import clip_ops
from toolkit.client.summaries import summary
from toolkit.client.train.global_step import get_or_create_global_step
from toolkit.client.variables.by_collection import trainable_variables
from toolkit.graph.metagraph import GraphKeys

#: gradients and their variables
Pairs = list[tuple[Any, Any]]
#: what the argument `global_step` has where the graph's is meant, for None means none
THE_GRAPHS = 0


def clip_gradient_norms(gradients_to_variables: Sequence[tuple[Any, Any]], max_norm: Any) -> Pairs:
    """Each gradient scaled down to a norm by itself."""

    def clipped(grad: Any) -> Any:
        if isinstance(grad, IndexedSlices):
            return IndexedSlices(clip_ops.clip_by_norm(grad.values, max_norm), grad.indices, grad.dense_shape)
        return None if grad is None else clip_ops.clip_by_norm(grad, max_norm)

    return [(clipped(grad), variable) for grad, variable in gradients_to_variables]


def clip_gradient_norms_fn(max_norm: Any) -> Callable[[Pairs], Pairs]:
    """`clip_gradient_norms` as a function of the pairs alone."""
    return lambda pairs: clip_gradient_norms(pairs, max_norm)


def multiply_gradients(grads_and_vars: Any, gradient_multipliers: Any) -> Pairs:
    """Gradients times factors of variables, or of their names.

    Raises:
        ValueError: the pairs are no list, the factors no dictionary, or a variable with a factor has no gradient.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError(f"grads_and_vars: expected a list, got {type(grads_and_vars).__name__}")
    if not gradient_multipliers or not isinstance(gradient_multipliers, dict):
        raise ValueError("gradient_multipliers: expected a dictionary of variables, or their names, to factors")
    factors = cast("dict[Any, Any]", gradient_multipliers)
    found: Pairs = []
    for grad, variable in cast("Pairs", grads_and_vars):
        key = variable if variable in factors else variable.op.name
        if key in factors:
            if grad is None:
                raise ValueError(f"gradient_multipliers: '{variable.op.name}' has no gradient to multiply")
            factor = convert_to_tensor(factors[key], grad.dtype.base)
            if isinstance(grad, IndexedSlices):
                grad = IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
            else:
                grad = grad * factor
        found.append((grad, variable))
    return found


def gradient_summaries(pairs: Sequence[tuple[Any, Any]], separator: str) -> list[Tensor]:
    """A histogram and the norm of each gradient, called `variable` + separator + "gradient"."""
    found: list[Tensor] = []
    for grad, variable in pairs:
        if grad is not None:
            values = grad.values if isinstance(grad, IndexedSlices) else grad
            name = f"{variable.op.name}{separator}gradient"
            found.append(summary.histogram(name, values))
            found.append(summary.scalar(f"{name}_norm", clip_ops.global_norm([values])))
    return found


def add_gradients_summaries(grads_and_vars: Any) -> list[Tensor]:
    """A histogram and the norm of each gradient (tf.contrib.training)."""
    return gradient_summaries(grads_and_vars, "_")


def create_train_op(
    total_loss: Any, optimizer: Any, global_step: Any = THE_GRAPHS, update_ops: Any = None,
    variables_to_train: Any = None, transform_grads_fn: Any = None, summarize_gradients: bool = False,
    gate_gradients: Any = 1, aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Tensor:  # fmt: skip
    """The loss, once the step is done; it is in the collection TRAIN_OP.

    Args:
        global_step: counts steps; default: the graph's, made where there is none; None: nothing counts.
        update_ops: what runs before; default: UPDATE_OPS.
        transform_grads_fn: of the pairs of gradients and variables.
        check_numerics: fail where the loss is no finite number.

    Raises:
        ValueError: there are no variables to train, or one is not trainable.
    """
    graph = get_default_graph()
    step = get_or_create_global_step() if global_step is THE_GRAPHS else global_step
    updates = dict.fromkeys(graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
    if updates:
        with control_dependencies(list(updates)):
            barrier = ops.no_op(name="update_barrier")
        total_loss = control_flow.with_dependencies([barrier], total_loss)
    trainable = trainable_variables()
    chosen: list[Any] = trainable if variables_to_train is None else list(variables_to_train)
    for each in chosen:
        if not each.trainable and not any(each is other for other in trainable):
            raise ValueError(f"variables_to_train: '{each.op.name}' is not trainable")
    if not chosen:
        raise ValueError("variables_to_train: there are no variables to train")
    pairs: Pairs = optimizer.compute_gradients(
        total_loss, chosen, gate_gradients=gate_gradients, aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )  # fmt: skip
    if transform_grads_fn is not None:
        pairs = transform_grads_fn(pairs)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_gradients_summaries(pairs)
    done = optimizer.apply_gradients(pairs, global_step=step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = ops.check_numerics(total_loss, message="the loss is no finite number")
        train_op: Any = control_flow.with_dependencies([done], total_loss)
    graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
    return train_op
