# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.gan: how generators and discriminators take turns to learn."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from toolkit.client.adversarial.models import CycleGANModel
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.scopes import name_scope
from toolkit.client.train import training_operation
from toolkit.client.train.global_step import get_or_create_global_step
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable
from toolkit.errors import ArgumentValueError
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.families.contrib import slim_learning, training
from toolkit.tensorflow.families.contrib.optimizers import VariableClippingOptimizer
from toolkit.tensorflow.families.train.session_hooks import SessionRunHook
from toolkit.tensorflow.families.train.sync_replicas import SyncReplicasOptimizer


class GANTrainOps(
    namedtuple("GANTrainOps", ("generator_train_op", "discriminator_train_op", "global_step_inc_op", "train_hooks"))
):
    """What trains each of both, what counts the steps, and hooks that training needs."""

    __slots__ = ()

    def __new__(
        cls, generator_train_op: Any, discriminator_train_op: Any, global_step_inc_op: Any, train_hooks: Any = ()
    ) -> GANTrainOps:
        return super().__new__(cls, generator_train_op, discriminator_train_op, global_step_inc_op, train_hooks)


class GANTrainSteps(namedtuple("GANTrainSteps", ("generator_train_steps", "discriminator_train_steps"))):
    """How many steps each of both learns in a step of training."""

    __slots__ = ()


_ONE_EACH = GANTrainSteps(1, 1)


def _updates(kwargs: dict[str, Any], scopes: list[str], check: bool) -> list[list[Any]]:
    """The updates that are in each scope.

    Raises:
        ValueError: some are in none.
    """
    graph = get_default_graph()
    wanted = kwargs.pop("update_ops", None)
    wanted = dict.fromkeys(graph.get_collection(GraphKeys.UPDATE_OPS) if wanted is None else wanted)
    found = [[op for op in graph.get_collection(GraphKeys.UPDATE_OPS, scope) if op in wanted] for scope in scopes]
    unused = wanted.keys() - {op for ops in found for op in ops}
    if check and unused:
        names = ", ".join(sorted(op.name for op in unused))
        raise ArgumentValueError(f"updates of neither the generator's nor the discriminator's scope: {names}")
    return found


def gan_train_ops(
    model: Any, loss: Any, generator_optimizer: Any, discriminator_optimizer: Any,
    check_for_unused_update_ops: bool = True, is_chief: bool = True, **kwargs: Any,
) -> GANTrainOps:  # fmt: skip
    """What trains a model; further arguments are those of `create_train_op`.

    Raises:
        ValueError: there are updates in neither scope, and `check_for_unused_update_ops`.
    """
    optimizers = (generator_optimizer, discriminator_optimizer, check_for_unused_update_ops, is_chief)
    if isinstance(model, CycleGANModel):
        parts = []
        for scope, part, of_part in (
            ("cyclegan_x2y_train", model.model_x2y, loss.loss_x2y),
            ("cyclegan_y2x_train", model.model_y2x, loss.loss_y2x),
        ):
            with name_scope(scope):
                parts.append(gan_train_ops(part, of_part, *optimizers, **kwargs))
        return GANTrainOps(
            tuple(part.generator_train_op for part in parts), tuple(part.discriminator_train_op for part in parts),
            get_or_create_global_step().assign_add(1),
        )  # fmt: skip
    step = get_or_create_global_step()
    counted = step.assign_add(1)
    scopes = [model.generator_scope.name, model.discriminator_scope.name]
    updates = _updates(kwargs, scopes, check_for_unused_update_ops)
    hooks: list[Any] = []
    made: list[Any] = []
    for name, optimizer, value, variables, of_scope in (
        ("generator", generator_optimizer, loss.generator_loss, model.generator_variables, updates[0]),
        ("discriminator", discriminator_optimizer, loss.discriminator_loss, model.discriminator_variables, updates[1]),
    ):
        own_step = None
        if isinstance(optimizer, SyncReplicasOptimizer):
            own_step = get_variable(
                f"dummy_global_step_{name}", [], step.dtype.base_dtype, initializers.Zeros(), trainable=False,
                collections=[GraphKeys.GLOBAL_VARIABLES],
            )  # fmt: skip
            of_scope = [*of_scope, own_step.assign(step)]
            hooks.append(optimizer.make_session_run_hook(is_chief))
        with name_scope(f"{name}_train"):
            made.append(
                training_operation.create_train_op(
                    value, optimizer, variables_to_train=variables, global_step=own_step, update_ops=of_scope, **kwargs
                )
            )
    return GANTrainOps(made[0], made[1], counted, hooks)


class RunTrainOpsHook(SessionRunHook):
    """Runs operations so many times before each step."""

    def __init__(self, train_ops: Any, train_steps: Any):
        self._train_ops = train_ops if isinstance(train_ops, list | tuple) else [train_ops]
        self._train_steps = train_steps

    def before_run(self, run_context: Any) -> Any:
        for _ in range(self._train_steps):
            run_context.session.run(self._train_ops)


def get_sequential_train_hooks(train_steps: Any = _ONE_EACH) -> Any:
    """Hooks with which first the generator learns, then the discriminator."""

    def get_hooks(train_ops: Any) -> list[Any]:
        return [
            RunTrainOpsHook(train_ops.generator_train_op, train_steps.generator_train_steps),
            RunTrainOpsHook(train_ops.discriminator_train_op, train_steps.discriminator_train_steps),
            *train_ops.train_hooks,
        ]

    return get_hooks


def get_joint_train_hooks(train_steps: Any = _ONE_EACH) -> Any:
    """Hooks with which both learn in the same steps, as far as they have as many."""
    generator, discriminator = train_steps.generator_train_steps, train_steps.discriminator_train_steps
    both = min(generator, discriminator)

    def get_hooks(train_ops: Any) -> list[Any]:
        one, other = train_ops.generator_train_op, train_ops.discriminator_train_op
        return [
            RunTrainOpsHook([one, other], both), RunTrainOpsHook(one, generator - both),
            RunTrainOpsHook(other, discriminator - both), *train_ops.train_hooks,
        ]  # fmt: skip

    return get_hooks


def gan_train(
    train_ops: Any, logdir: Any, get_hooks_fn: Any = get_sequential_train_hooks(), master: str = "",
    is_chief: bool = True, scaffold: Any = None, hooks: Any = None, chief_only_hooks: Any = None,
    save_checkpoint_secs: Any = 600, save_summaries_steps: Any = 100, config: Any = None,
) -> Any:  # fmt: skip
    """Train in a monitored session until a hook stops it; returns the last global step."""
    all_hooks = [*([] if hooks is None else hooks), *get_hooks_fn(train_ops)]
    return training.train(
        train_ops.global_step_inc_op, logdir, master, is_chief, scaffold, all_hooks, chief_only_hooks,
        save_checkpoint_secs, save_summaries_steps, config,
    )  # fmt: skip


def get_sequential_train_steps(train_steps: Any = _ONE_EACH) -> Any:
    """A `train_step_fn` for slim.learning.train."""

    def sequential_train_steps(sess: Any, train_ops: Any, global_step: Any, train_step_kwargs: Any) -> Any:
        given = {key: value for key, value in train_step_kwargs.items() if key != "should_stop"}
        total = 0
        for op, count in (
            (train_ops.generator_train_op, train_steps.generator_train_steps),
            (train_ops.discriminator_train_op, train_steps.discriminator_train_steps),
        ):
            for _ in range(count):
                value, _ = slim_learning.train_step(sess, op, global_step, given)
                total += value
        sess.run(train_ops.global_step_inc_op)
        stop = sess.run(train_step_kwargs["should_stop"]) if "should_stop" in train_step_kwargs else False
        return total, stop

    return sequential_train_steps


def clip_variables(optimizer: Any, variables: Any, weight_clip: Any) -> Any:
    """An optimizer that keeps the norms of variables below a bound.

    Raises:
        ValueError: the bound is negative.
    """
    if weight_clip < 0:
        raise ArgumentValueError(f"weight_clip: expected 0 or more, got {weight_clip}")
    return VariableClippingOptimizer(
        optimizer, {variable: [] for variable in variables}, weight_clip, use_locking=True,
        colocate_clip_ops_with_vars=True,
    )  # fmt: skip


def clip_discriminator_weights(optimizer: Any, model: Any, weight_clip: Any) -> Any:
    """`clip_variables` of a model's discriminator."""
    return clip_variables(optimizer, model.discriminator_variables, weight_clip)
