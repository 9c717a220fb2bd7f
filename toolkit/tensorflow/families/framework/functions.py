# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Defun and Declare of tensorflow.python.framework.function: functions that are called by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from schemas import function_pb2, op_def_pb2
from toolkit.client.construction import context
from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions import defined
from toolkit.errors import GraphError, UsageError


class _DefinedFunction(defined.DefinedFunction):
    """What Defun makes of a function whose types are known."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None)
        return _called(lambda: self.call(args, name, kwargs))

    @property
    def cached_definition(self) -> function_pb2.FunctionDef:
        return self.definition

    @property
    def declared_input_types(self) -> tuple[Any, ...]:
        return tuple(self.types)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """Tensors of the graph around that a call gives after the arguments."""
        _ = self.definition
        return self.captured

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """Names and types of the operations with a state."""
        _ = self.definition
        return self.stateful

    @property
    def python_grad_func(self) -> Callable[..., Any] | None:
        return self.python_gradient

    @property
    def grad_func_name(self) -> str | None:
        return None if self.gradient is None else self.gradient.name

    def set_grad_func(self, grad_func: Any) -> None:
        """Say which function is the gradient, where none is given yet."""
        if self.gradient is not None or not isinstance(grad_func, defined.DefinedFunction):
            raise ValueError("grad_func: expected a function made by Defun, once")
        self.gradient = grad_func

    def add_to_graph(self, g: Any) -> None:
        _called(lambda: self.add_to(g))


class _OverloadedFunction(defined.OverloadedFunction):
    """What Defun makes of a function without types: one for each combination that it is called with."""

    defined_as = _DefinedFunction

    def instantiate(self, input_types: Sequence[Any]) -> Any:
        return self.of_types([as_dtype(each).base for each in input_types])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None)
        return _called(lambda: self.call(args, name, kwargs))


def _called(make: Callable[[], Any]) -> Any:
    """The results of a call: a tensor, a tuple of them, or the operation where there are none."""
    try:
        op = make()
    except (GraphError, UsageError) as error:  # programs catch what TensorFlow raises
        raise ValueError(error.message) from None
    if not isinstance(op, Operation) or not op.outputs:
        return op
    return op.outputs[0] if len(op.outputs) == 1 else tuple(op.outputs)


class Defun:
    """`@Defun(tf.float32, tf.float32)`: a Python function becomes a function of the graphs it is called in.

    Keywords: func_name, grad_func (a function made by Defun), python_grad_func, out_names, shape_func, noinline,
    capture_by_value, capture_resource_var_by_value.
    """

    def __init__(self, *input_types: Any, **kwargs: Any):
        self._types = input_types
        taken = {
            "name": "func_name", "gradient": "grad_func", "python_gradient": "python_grad_func",
            "result_names": "out_names", "shape_function": "shape_func",
        }  # fmt: skip
        self._settings: dict[str, Any] = {key: kwargs.pop(other, None) for key, other in taken.items()}
        self._settings["by_value"] = bool(kwargs.pop("capture_by_value", False))
        self._settings["variables_by_value"] = bool(kwargs.pop("capture_resource_var_by_value", True))
        kwargs.pop("allowlisted_stateful_ops", None)
        self._settings["attrs"] = kwargs

    def __call__(self, func: Any) -> Any:
        try:
            names = defined.parameters_of(func, len(self._types) if self._types else None)
            if self._types or defined.takes_nothing(func):
                return _DefinedFunction(func, names, self._types, **self._settings)
            return _OverloadedFunction(func, names, **self._settings)
        except UsageError as error:
            raise ValueError(error.message) from None


class Declare:
    """A function that is called before it is defined: its name, and lists of (name, type) of arguments and results."""

    def __init__(self, func_name: str, inputs: Sequence[tuple[str, Any]], outputs: Sequence[tuple[str, Any]]):
        self._signature = op_def_pb2.OpDef(name=func_name)
        for args, given in ((self._signature.input_arg, inputs), (self._signature.output_arg, outputs)):
            for name, dtype in given:
                args.add(name=name, type=as_dtype(dtype).enum)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None)

        def make() -> Operation:
            context.get_default_graph().core.library.declare(self._signature)
            return defined.add_call(self._signature, [convert_to_tensor(each) for each in inputs], name, kwargs)

        return _called(make)


def from_library(lib: Any) -> list[Any]:
    """The functions of a FunctionDefLibrary, with their gradients."""
    try:
        return defined.functions_of(lib, _DefinedFunction)
    except GraphError as error:
        raise ValueError(error.message) from None
