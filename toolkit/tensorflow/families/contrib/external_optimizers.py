# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.opt's door to optimizers outside of the graph: SciPy's, where it is installed, and those of programs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from toolkit.client.arrays import array_ops
from toolkit.client.arrays.array_ops import placeholder
from toolkit.client.construction.session_stack import get_default_session
from toolkit.client.gradients import gradients
from toolkit.client.variables.by_collection import trainable_variables
from toolkit.errors import UsageError
from toolkit.tensorflow.families.platform.services import info


class ExternalOptimizerInterface:
    """A loss and what it depends on, as functions of one vector. Subclasses have `_minimize`, which gets them.

    Args:
        loss: what becomes small.
        var_list: what may change; the trainable variables by default.
        equalities, inequalities: tensors that are to be 0, or at least 0.
        var_to_bounds: a variable to the least and the greatest values of it.
        **optimizer_kwargs: for `_minimize`.
    """

    def __init__(
        self, loss: Any, var_list: Any = None, equalities: Any = None, inequalities: Any = None,
        var_to_bounds: Any = None, **optimizer_kwargs: Any,
    ):  # fmt: skip
        self._loss = loss
        self._vars = trainable_variables() if var_list is None else list(var_list)
        self._equalities, self._inequalities = list(equalities or ()), list(inequalities or ())
        self._packed_bounds = None if var_to_bounds is None else _bounds(self._vars, var_to_bounds)
        self.optimizer_kwargs = optimizer_kwargs
        self._update_placeholders = [placeholder(v.dtype.base) for v in self._vars]
        shapes = [_sizes(v) for v in self._vars]
        self._var_updates = [
            v.assign(array_ops.reshape(given, shape))
            for v, given, shape in zip(self._vars, self._update_placeholders, shapes, strict=True)
        ]
        slopes = [self._slopes(each) for each in (loss, *self._equalities, *self._inequalities)]
        self._packed_var = _packed(self._vars)
        self._packed_loss_grad, *rest = [_packed(each) for each in slopes]
        self._packed_equality_grads = rest[: len(self._equalities)]
        self._packed_inequality_grads = rest[len(self._equalities) :]
        ends = list(itertools.accumulate((math.prod(shape) for shape in shapes), initial=0))
        self._parts = [
            (v, slice(*ends[i : i + 2]), shape) for i, (v, shape) in enumerate(zip(self._vars, shapes, strict=True))
        ]

    def minimize(
        self, session: Any = None, feed_dict: Any = None, fetches: Any = None, step_callback: Any = None,
        loss_callback: Any = None, **run_kwargs: Any,
    ) -> None:  # fmt: skip
        """Leaves what `_minimize` finds in the variables.

        Args:
            fetches: what `loss_callback` gets, each time that the loss is computed.
            step_callback: gets the vector after each step.
            **run_kwargs: for the run of the session that writes the variables.

        Raises:
            UsageError: there is no session.
        """
        session = session or get_default_session()
        if session is None:
            raise UsageError("minimize runs a session: give one, or enter `with tf.Session():` first")
        more = list(fetches or [])

        def function(tensors: Any, callback: Any = None) -> Any:
            wanted = list(tensors) if isinstance(tensors, list) else [tensors]

            def evaluate(vector: Any) -> Any:
                feeds = {v: vector[part].reshape(shape) for v, part, shape in self._parts}
                values = session.run(wanted + more, feed_dict={**feeds, **(feed_dict or {})})
                if callback is not None:
                    callback(*values[len(wanted) :])
                return values[: len(wanted)]

            return evaluate

        found = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=function([self._loss, self._packed_loss_grad], loss_callback),
            equality_funcs=[function(each) for each in self._equalities],
            equality_grad_funcs=[function(each) for each in self._packed_equality_grads],
            inequality_funcs=[function(each) for each in self._inequalities],
            inequality_grad_funcs=[function(each) for each in self._packed_inequality_grads],
            packed_bounds=self._packed_bounds, step_callback=step_callback or (lambda vector: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )  # fmt: skip
        values = [found[part] for _, part, _ in self._parts]
        feeds = dict(zip(self._update_placeholders, values, strict=True))
        session.run(self._var_updates, feed_dict=feeds, **run_kwargs)

    def _minimize(self, **kwargs: Any) -> Any:
        raise NotImplementedError("a subclass of ExternalOptimizerInterface defines _minimize, which returns a vector")

    def _slopes(self, tensor: Any) -> list[Any]:
        """The gradient of each variable; zeros where there is none."""
        found = gradients(tensor, self._vars)
        return [array_ops.zeros_like(v) if g is None else g for v, g in zip(self._vars, found, strict=True)]


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """`scipy.optimize.minimize`: L-BFGS-B, or the `method` among the arguments."""

    _DEFAULT_METHOD = "L-BFGS-B"
    _OURS = ("jac", "callback", "constraints")

    def _minimize(
        self, initial_val: Any, loss_grad_func: Any, equality_funcs: Any, equality_grad_funcs: Any,
        inequality_funcs: Any, inequality_grad_funcs: Any, packed_bounds: Any, step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:  # fmt: skip
        given = {"method": self._DEFAULT_METHOD, **optimizer_kwargs}
        if "bounds" in given:
            raise ValueError("bounds: give them for each variable, as var_to_bounds")
        if taken := [name for name in self._OURS if name in given]:
            raise ValueError(f"{taken[0]}: made of the loss and its conditions, so it cannot be given")
        try:
            from scipy import optimize  # pyright: ignore[reportMissingImports]  # only where it is installed
        except ImportError as error:
            raise UsageError("ScipyOptimizerInterface needs SciPy, which is not installed: install scipy") from error

        def loss_and_slope(vector: Any) -> Any:
            loss, slope = loss_grad_func(vector)
            return loss, slope.astype(np.float64)  # what its Fortran takes

        conditions = [
            {"type": kind, "fun": lambda x, f=function: f(x)[0], "jac": lambda x, f=slope: f(x)[0]}
            for kind, functions, slopes in (
                ("eq", equality_funcs, equality_grad_funcs), ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for function, slope in zip(functions, slopes, strict=True)
        ]  # fmt: skip
        result = optimize.minimize(
            loss_and_slope, initial_val, jac=True, callback=step_callback, constraints=conditions,
            bounds=packed_bounds, **given,
        )  # fmt: skip
        info(f"{result.message}: {result.fun} after {getattr(result, 'nit', '?')} steps")
        return result.x


def _sizes(v: Any) -> tuple[int, ...]:
    return tuple(v.get_shape().as_list())


def _packed(tensors: list[Any]) -> Any:
    """All of them in one vector; None of none."""
    flat = [array_ops.reshape(each, [-1]) for each in tensors]
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else array_ops.concat(flat, 0)


def _bounds(variables: list[Any], given: Any) -> list[tuple[Any, Any]]:
    """The least and greatest value of each number."""
    low, high = (
        [x for v in variables for x in np.broadcast_to(given.get(v, (-np.inf, np.inf))[side], _sizes(v)).flat]
        for side in (0, 1)
    )
    return list(zip(low, high, strict=True))
