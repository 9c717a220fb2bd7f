"""One call from a loss to a training operation, with clipping, noise and summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_scalar
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.random import random_ops
from toolkit.client.summaries import summary
from toolkit.client.train.averages import assign_moving_average
from toolkit.client.train.global_step import get_global_step
from toolkit.client.train.optimizer import Optimizer
from toolkit.client.variables import initializers
from toolkit.client.variables.by_collection import trainable_variables
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.errors import did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

#: gradients and their variables
Pairs = list[tuple[Any, Any]]
#: what may be summarized
SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]


def optimize_loss(
    loss: Any, global_step: Any, learning_rate: Any, optimizer: Any, classes: dict[str, Callable[..., Any]],
    gradient_noise_scale: Any = None, gradient_multipliers: Any = None, clip_gradients: Any = None,
    learning_rate_decay_fn: Any = None, update_ops: Any = None, variables: Any = None, name: Any = None,
    summaries: Any = None, colocate_gradients_with_ops: bool = False, increment_global_step: bool = True,
) -> Tensor:  # fmt: skip
    """The loss, once the step is done.

    Args:
        learning_rate: a float, which becomes a variable, or a scalar tensor; None where the optimizer has its own.
        optimizer: the name of one, a class, an object, or a function of the learning rate.
        classes: optimizers by their names.
        gradient_noise_scale: add normally distributed noise of this size to the gradients.
        gradient_multipliers: variables, or their names, to factors.
        clip_gradients: a norm of all gradients together, or a function of the pairs.
        learning_rate_decay_fn: of the learning rate and the step.
        update_ops: what runs before; default: UPDATE_OPS.
        summaries: some of `SUMMARIES`; default: loss, learning rate, norm of all gradients.

    Raises:
        ValueError: an argument is none of these.
    """
    loss = assert_scalar_loss(loss)
    step = get_global_step() if global_step is None else global_step
    graph = get_default_graph()
    with variable_scope(name, "OptimizeLoss", [loss, step]):
        if update_ops is None:
            update_ops = dict.fromkeys(graph.get_collection(GraphKeys.UPDATE_OPS))
        if update_ops:
            loss = with_dependencies(list(update_ops), loss)
        rate = _rate(learning_rate)
        wanted = ["loss", "learning_rate", "global_gradient_norm"] if summaries is None else list(summaries)
        for each in wanted:
            if each not in SUMMARIES:
                raise ValueError(f"summaries: there is no '{each}'{did_you_mean(each, SUMMARIES)}")
        if learning_rate is not None and learning_rate_decay_fn is not None:
            if step is None:
                raise ValueError(
                    "learning_rate_decay_fn: the learning rate decays by the global step, and there is none"
                )
            rate = learning_rate_decay_fn(rate, step)
            if "learning_rate" in wanted:
                summary.scalar("learning_rate", rate)
        made = _optimizer(optimizer, rate, classes)
        pairs: Pairs = made.compute_gradients(
            loss, trainable_variables() if variables is None else variables,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )  # fmt: skip
        if gradient_noise_scale is not None:
            pairs = [(_noisy(grad, gradient_noise_scale), variable) for grad, variable in pairs]
        if gradient_multipliers is not None:
            pairs = multiplied(pairs, gradient_multipliers)
            if not pairs:
                raise ValueError("gradient_multipliers: there are no gradients to multiply")
        pairs = _clipped(pairs, clip_gradients, loss, wanted)
        done = made.apply_gradients(pairs, global_step=step if increment_global_step else None, name="train")
        return with_dependencies([done], loss)


def assert_scalar_loss(loss: Any) -> Tensor:
    """The loss as a tensor, which is a scalar."""
    loss = convert_to_tensor(loss)
    assert_scalar(loss)
    return loss


def _rate(learning_rate: Any) -> Any:
    if learning_rate is None or (isinstance(learning_rate, Tensor) and learning_rate.static_shape.rank == 0):
        return learning_rate
    if isinstance(learning_rate, float):
        if learning_rate < 0.0:
            raise ValueError(f"learning_rate: expected a number that is not negative, got {learning_rate}")
        return get_variable(
            "learning_rate", [], trainable=False, initializer=initializers.Constant(learning_rate)
        )  # fmt: skip
    kind = type(learning_rate).__name__
    raise ValueError(f"learning_rate: expected a float or a scalar tensor, got {learning_rate} of type {kind}")


def _optimizer(given: Any, rate: Any, classes: dict[str, Callable[..., Any]]) -> Any:
    if isinstance(given, Optimizer):
        return given
    by_name = isinstance(given, str)
    kind: Any = given
    if by_name and given not in classes:
        raise ValueError(f"optimizer: there is no '{given}'{did_you_mean(given, classes)} ({', '.join(classes)})")
    if by_name or (isinstance(given, type) and issubclass(given, Optimizer)):
        if rate is None:
            raise ValueError(f"learning_rate: the optimizer {given} needs one")
        make: Any = classes[given] if by_name else given
        return make(learning_rate=rate)
    if not callable(kind):
        raise ValueError(f"optimizer: expected a name, a class, an optimizer or a function, got {given!r}")
    made: Any = kind() if rate is None else kind(rate)
    if not isinstance(made, Optimizer):
        raise ValueError(f"optimizer: the function gave {made!r}, which is no optimizer")
    return made


def _clipped(pairs: Pairs, clip: Any, loss: Tensor, wanted: Sequence[str]) -> Pairs:
    """Clipped gradients, with summaries of what they were and are."""
    with_norm = "global_gradient_norm" in wanted or "gradient_norm" in wanted
    if with_norm:
        summary.scalar("global_norm/gradient_norm", clip_ops.global_norm([grad for grad, _ in pairs]))
    if isinstance(clip, float):
        clipped, _ = clip_ops.clip_by_global_norm([grad for grad, _ in pairs], clip)
        pairs = list(zip(clipped, [variable for _, variable in pairs], strict=True))
    elif callable(clip):
        apply: Any = clip
        pairs = apply(pairs)
    elif clip is not None:
        raise ValueError(f"clip_gradients: expected a float or a function, got {clip!r}")
    if "loss" in wanted:
        summary.scalar("loss", loss)
    for grad, variable in pairs:
        values = grad.values if isinstance(grad, IndexedSlices) else grad
        if values is None:
            continue
        name = variable.name.replace(":", "_")
        if "gradients" in wanted:
            summary.histogram(f"gradients/{name}", values)
        if "gradient_norm" in wanted:
            summary.scalar(f"gradient_norm/{name}", clip_ops.global_norm([values]))
    if clip is not None and with_norm:
        summary.scalar("global_norm/clipped_gradient_norm", clip_ops.global_norm([grad for grad, _ in pairs]))
    return pairs


def _noisy(grad: Any, scale: Any) -> Any:
    if grad is None:
        return None
    shape = grad.dense_shape if isinstance(grad, IndexedSlices) else grad.static_shape.as_list()
    noise = random_ops.truncated_normal(shape) * scale
    return convert_to_tensor(grad) + noise


def scaled(grad: Any, factor: Any) -> Any:
    """A gradient times a number, slices as well; None stays."""
    if grad is None:
        return None
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
    return grad * factor


def multiplied(pairs: Pairs, multipliers: Any) -> Pairs:
    """Gradients times factors of variables, or of their names."""
    found: Pairs = []
    for grad, variable in pairs:
        key = next((each for each in (variable, variable.name) if each in multipliers), None)
        if grad is not None and key is not None:
            factor = multipliers[key]
            grad = scaled(grad, factor if isinstance(grad, IndexedSlices) else math_ops.cast(factor, grad.dtype.base))
        found.append((grad, variable))
    return found


def adaptive_clipping_fn(
    std_factor: float = 2.0, decay: Any = 0.95, static_max_norm: Any = None, global_step: Any = None,
    report_summary: bool = False, epsilon: float = 1e-8, name: Any = None,
) -> Callable[[Pairs], Pairs]:  # fmt: skip
    """A function for `clip_gradients` that keeps norms near those of the steps before.

    Args:
        std_factor: how many standard deviations above the mean a norm may be.
        decay: of the moving averages of norms; with a `global_step`, they start faster.
        static_max_norm: a norm that gradients never exceed.
    """

    def clip(pairs: Pairs) -> Pairs:
        norm = clip_ops.global_norm([grad for grad, _ in pairs])
        largest, log_mean = _adaptive_norm(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            summary.scalar("global_norm/adaptive_max_gradient_norm", largest)
        factor = array_ops.where(ops.less(norm, largest), array_ops.ones_like(norm), math_ops.exp(log_mean) / norm)
        if static_max_norm is not None:
            factor = math_ops.minimum(static_max_norm / norm, factor)
        return [(scaled(grad, factor), variable) for grad, variable in pairs]

    return clip


def _adaptive_norm(
    norm: Tensor, std_factor: float, decay: Any, global_step: Any, epsilon: float, name: Any
) -> tuple[Tensor, Tensor]:
    with variable_scope(name, "AdaptiveMaxNorm", [norm]):
        log_norm = math_ops.log(norm + epsilon)
        if global_step is not None:
            steps = math_ops.cast(global_step, dtypes.float32)
            decay = math_ops.minimum(decay, steps / (steps + 1.0))

        def average(of: str, value: Tensor) -> Any:
            kept = get_variable(of, value.static_shape, value.dtype.base, initializers.Zeros(), trainable=False)
            return assign_moving_average(kept, value, decay)

        mean = average("mean", log_norm)
        squares = average("sq_mean", math_ops.square(log_norm))
        variance = squares - math_ops.square(mean)
        deviation = math_ops.sqrt(math_ops.maximum(epsilon, variance))
        return math_ops.exp(mean + std_factor * deviation), mean
