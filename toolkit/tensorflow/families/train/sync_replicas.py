# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train.SyncReplicasOptimizer: gradients of several replicas are averaged before they change the variables."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import colocate_with, control_dependencies, device, name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.variables.by_collection import global_variables, report_uninitialized_variables
from toolkit.client.variables.creation import Variable
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.data import queues
from toolkit.tensorflow.families.train.optimizers import Optimizer
from toolkit.tensorflow.families.train.session_hooks import SessionRunHook


class SyncReplicasOptimizer(Optimizer):
    """Each replica adds its gradients to accumulators and waits for a token; the chief applies their averages.

    The chief's queue runner takes the averages once there are enough, has the optimizer inside apply them, and gives
    out a token for each replica. Gradients computed from variables that have changed since are dropped.

    Args:
        opt: what applies the averages.
        replicas_to_aggregate: how many gradients make an average.
        total_num_replicas: how many replicas there are; default: as many as are aggregated.
    """

    def __init__(
        self, opt: Any, replicas_to_aggregate: int, total_num_replicas: Any = None, variable_averages: Any = None,
        variables_to_average: Any = None, use_locking: bool = False, name: str = "sync_replicas",
    ):  # fmt: skip
        super().__init__(use_locking, name)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        log().info("SyncReplicasOptimizer: %s gradients of %s replicas are averaged", replicas_to_aggregate, total)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total
        self._tokens_per_step = max(total, replicas_to_aggregate)
        self._averages = variable_averages, variables_to_average
        self._accumulators: list[tuple[Any, str]] = []
        self._runner: Any = None
        self._token_queue: Any = None
        self._step: Any = None
        self.local_step_init_op: Any = None
        self.ready_for_local_init_op: Any = None
        self.chief_init_op: Any = None

    @property
    def is_applied(self) -> bool:
        """Whether `apply_gradients` has been called."""
        return self._runner is not None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[Any]:
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        """What a replica runs: its gradients are added, and it waits for a token.

        Raises:
            ValueError: there is no variable or no global step; a gradient is of no known kind.
        """
        pairs: list[Any] = list(grads_and_vars or ())
        if not pairs:
            raise ValueError("apply_gradients needs at least one pair of a gradient and a variable")
        if global_step is None:
            raise ValueError("global_step is needed: it says which gradients come too late")
        self._step = global_step
        dtype = global_step.dtype.base
        with colocate_with(ops.no_op()):  # as TensorFlow anchors what a replica keeps
            local_step = Variable(
                0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], dtype=dtype, name="sync_rep_local_step"
            )
        self.local_step_init_op = ops.assign(local_step.handle, global_step)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        with name_scope(None), name_scope(self.name):
            added: list[Any] = []
            taken = [self._accumulate(grad, variable, local_step, added) for grad, variable in pairs]
            home = global_step.device or None
            with name_scope(""), device(home):
                averages = [(grad, variable) for grad, (_, variable) in zip(taken, pairs, strict=True)]
                update = self._opt.apply_gradients(averages, global_step)
            with name_scope(""), device(home):
                label = "sync_token_q"
                self._token_queue = queues.FIFOQueue(-1, dtype, shapes=(), name=label, shared_name=label)
            with name_scope(""), device(home):
                with control_dependencies(added):
                    token = self._token_queue.dequeue()
                train = ops.assign(local_step.handle, token)
                with control_dependencies([update]):
                    tokens = array_ops.fill([self._tokens_per_step], global_step)
                    synchronized = self._token_queue.enqueue_many((tokens,))
                moving, averaged = self._averages
                if moving is not None:
                    with control_dependencies([synchronized]), name_scope(""):
                        synchronized = moving.apply(averaged)
                self._runner = queues.QueueRunner(self._token_queue, [synchronized])
            initial = [self.local_step_init_op]
            for accumulator, place in self._accumulators:
                with device(place or None):
                    initial.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
            self.chief_init_op = group(initial)
        return train

    def _accumulate(self, grad: Any, variable: Any, local_step: Any, added: list[Any]) -> Any:
        """Add what collects the gradients of a variable; returns their average."""
        with device(variable.device or None):
            if grad is None:
                return None
            if isinstance(grad, Tensor):
                made = queues.ConditionalAccumulator(grad.dtype, variable.get_shape(), f"{variable.name}/grad_accum")
                added.append(made.apply_grad(grad, local_step=local_step))
                average = made.take_grad(self._replicas_to_aggregate)
            elif isinstance(grad, IndexedSlices):
                made = queues.SparseConditionalAccumulator(grad.dtype, (), f"{variable.name}/grad_accum")
                added.append(made.apply_indexed_slices_grad(grad, local_step=local_step))
                average = made.take_indexed_slices_grad(self._replicas_to_aggregate)
            else:
                raise ValueError(f"the gradient of '{variable.name}' is {grad!r}; expected a tensor or IndexedSlices")
            self._accumulators.append((made, variable.device))
            return average

    def get_chief_queue_runner(self) -> Any:
        """What averages, applies and gives out tokens.

        Raises:
            ValueError: `apply_gradients` has not been called.
        """
        self._require_applied("get_chief_queue_runner")
        return self._runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Any:
        """The tokens of the first step; needed where replicas compute several gradients for one update.

        Raises:
            ValueError: `apply_gradients` has not been called; the tokens are too few for a first step.
        """
        self._require_applied("get_init_tokens_op")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(f"num_tokens is {num_tokens}; the first step needs {needed}")
        if num_tokens <= 0:
            return ops.no_op(name="no_init_tokens")
        with device(self._step.device or None), name_scope(""):
            tokens = array_ops.fill([num_tokens], self._step)
            return self._token_queue.enqueue_many((tokens,))

    def _require_applied(self, method: str) -> None:
        if not self.is_applied:
            raise ValueError(f"{method}() comes after apply_gradients(), which makes what it returns")

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        return self._opt.variables()

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """The hook of a monitored session that initializes steps, tokens and, at the chief, the queue runner."""
        return _SyncReplicasHook(self, is_chief, num_tokens)


class _SyncReplicasHook(SessionRunHook):
    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int):
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._init_op: Any = None
        self._tokens_op: Any = None
        self._runner: Any = None

    def begin(self) -> None:
        if not self._optimizer.is_applied:
            raise ValueError("the hook of a SyncReplicasOptimizer needs its apply_gradients() to be called before")
        self._init_op = self._optimizer.local_step_init_op
        if self._is_chief:
            self._init_op = self._optimizer.chief_init_op
            self._runner = self._optimizer.get_chief_queue_runner()
            self._tokens_op = self._optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: Any, coord: Any) -> None:
        lacking = session.run(self._optimizer.ready_for_local_init_op)
        if len(lacking):
            names = ", ".join(name.decode() for name in lacking)
            raise RuntimeError(f"SyncReplicasOptimizer starts with initialized variables; these are not: {names}")
        session.run(self._init_op)
        if self._tokens_op is not None:
            session.run(self._tokens_op)
        if self._runner is not None:
            self._runner.create_threads(session, coord=coord, daemon=True, start=True)
