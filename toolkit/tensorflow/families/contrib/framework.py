# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.framework: global steps, checkpoints for variables, deprecated functions, graphs of inputs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from toolkit.client.construction import context, static_values
from toolkit.client.construction.create import graph_of
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow
from toolkit.client.train import global_step as steps
from toolkit.client.variables import model_variables
from toolkit.client.variables.base import BaseVariable
from toolkit.graph.device import DeviceSpec
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train import saver

# -- the global step -------------------------------------------------------------------------------------------------


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises: TypeError or ValueError: no whole number, or no scalar."""
    dtype, shape = global_step_tensor.dtype.base, global_step_tensor.static_shape
    if not dtype.is_integer:
        raise TypeError(f"the global step '{global_step_tensor.name}' has type {dtype}; expected whole numbers")
    if shape.rank not in (0, None):
        raise TypeError(f"the global step '{global_step_tensor.name}' has shape {shape}; expected a scalar")


def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    if global_step_tensor is None:
        return steps.get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


def get_global_step(graph: Any = None) -> Any:
    return steps.get_global_step(graph)


def create_global_step(graph: Any = None) -> Any:
    return steps.create_global_step(graph)


def get_or_create_global_step(graph: Any = None) -> Any:
    return steps.get_or_create_global_step(graph)


# -- checkpoints -----------------------------------------------------------------------------------------------------


def _prefix(path: str) -> str:
    found = saver.latest_checkpoint(path) if os.path.isdir(path) else path
    if found is None:
        raise ValueError(f"{path}: there is no checkpoint in the folder")
    return found


def load_checkpoint(filepattern: str) -> Any:
    return saver.CheckpointReader(_prefix(filepattern))


def load_variable(checkpoint_dir: str, name: str) -> Any:
    return saver.load_variable(checkpoint_dir, name)


def list_variables(checkpoint_dir: str) -> Any:
    return saver.list_variables(checkpoint_dir)


def assign_from_checkpoint(model_path: str, var_list: Any, ignore_missing_vars: bool = False) -> Any:
    """An operation that assigns what a checkpoint has, and what to feed it."""
    by_name: dict[str, list[Any]] = {}
    if isinstance(var_list, dict):
        by_name = {name: list(v) if isinstance(v, list | tuple) else [v] for name, v in var_list.items()}
    else:
        for each in var_list:
            by_name.setdefault(model_variables.get_variable_full_name(each), []).append(each)
    reader = saver.CheckpointReader(model_path)
    pairs: list[tuple[Any, Any]] = []
    for name, variables in by_name.items():
        if not reader.has_tensor(name):
            if not ignore_missing_vars:
                raise ValueError(f"{model_path}: the checkpoint has no '{name}'")
            log().warning("%s: the checkpoint has no '%s'", model_path, name)
            continue
        value = reader.get_tensor(name)
        pairs.extend((each, _part_for(each, name, value)) for each in variables)
    return model_variables.assignments(pairs)


def _part_for(variable: Any, name: str, value: Any) -> Any:
    """What of a value a variable holds: all, or its slice."""
    info = variable.slice_info
    if info is not None:
        places = zip(info.offset, info.shape, strict=True)
        return value[tuple(slice(start, start + size) for start, size in places)]
    if tuple(value.shape) != tuple(variable.static_shape.as_list()):
        raise ValueError(f"'{name}' has shape {value.shape} in the checkpoint, the variable {variable.static_shape}")
    return value


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Any:
    """A function of a session that restores variables from a checkpoint."""
    if not var_list:
        raise ValueError("var_list: there are no variables to restore")
    if ignore_missing_vars:
        named = var_list if isinstance(var_list, dict) else {each.op.name: each for each in var_list}
        reader = saver.CheckpointReader(model_path)
        var_list = {name: each for name, each in named.items() if reader.has_tensor(name)}
        for name in named.keys() - var_list.keys():
            log().warning("%s: the checkpoint has no '%s'", model_path, name)
        if not var_list:
            log().warning("%s: the checkpoint has none of the variables", model_path)
            return None
    restorer = saver.Saver(var_list, reshape=reshape_variables)
    return lambda session: restorer.restore(session, model_path)


# -- devices, names, graphs ------------------------------------------------------------------------------------------


class VariableDeviceChooser:
    """A device function that gives variables to the tasks of a job in turn."""

    def __init__(
        self, num_tasks: int = 0, job_name: str = "ps", device_type: str = "CPU", device_index: int = 0,
        replica: Any = None,
    ):  # fmt: skip
        self._tasks, self._job, self._next = num_tasks, job_name, 0
        self._place = {"device_type": device_type, "device_index": device_index, "replica": replica}

    def __call__(self, op: Any) -> str:
        place: dict[str, Any] = dict(self._place)
        if self._tasks > 0:
            place.update(job=self._job, task=self._next)
            self._next = (self._next + 1) % self._tasks
        return str(DeviceSpec(**place))


def get_graph_from_inputs(op_input_list: Any, graph: Any = None) -> Any:
    return graph_of(list(op_input_list)) if graph is None else graph


def get_name_scope() -> str:
    return context.get_default_graph().get_name_scope()


def get_placeholders(graph: Any) -> list[Tensor]:
    """The placeholders of a graph."""
    if not hasattr(graph, "get_operations"):
        raise TypeError(f"graph: expected a Graph, got {type(graph).__name__}")
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


def prepend_name_scope(name: str, import_scope: Any) -> str:
    """A name inside of a scope; what stands before it (^, loc:@) stays there."""
    if not import_scope:
        return name
    scope = import_scope.removesuffix("/")
    for mark in ("loc:@", "^"):
        if name.startswith(mark):
            return f"{mark}{scope}/{name[len(mark) :]}"
    return f"{scope}/{name}"


def strip_name_scope(name: str, export_scope: Any) -> str:
    """A name without the scope that it begins with."""
    if not export_scope:
        return name
    scope = export_scope.removesuffix("/") + "/"
    for mark in ("loc:@", "^", ""):
        if name.startswith(mark + scope):
            return mark + name[len(mark + scope) :]
    return name


# -- conditions ------------------------------------------------------------------------------------------------------


def smart_constant_value(pred: Any) -> Any:
    """What a predicate is known to be, or None."""
    if isinstance(pred, bool | int) and pred in (0, 1):
        return bool(pred)
    if isinstance(pred, Tensor):
        found = static_values.static_value(pred)
        return None if found is None else bool(found)
    if isinstance(pred, BaseVariable):
        return None
    raise TypeError(f"pred: expected a bool, 0, 1 or a tensor, got {type(pred).__name__}")


def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: Any = None) -> Any:
    """`tf.cond`, or the one function alone where the predicate is known."""
    for given, what in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if not callable(given):
            raise TypeError(f"{what}: expected a function, got {type(given).__name__}")
    known = smart_constant_value(pred)
    if known is not None:
        return true_fn() if known else false_fn()
    return control_flow.cond(pred, true_fn, false_fn, name=name)


def smart_case(pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, name: str = "smart_case") -> Any:
    """`tf.case`, or the function alone whose predicate is known to hold."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    with name_scope(name) as scope:
        while pairs:
            known = smart_constant_value(pairs[0][0])
            if known is None:
                return control_flow.case(pairs, default, exclusive=exclusive, name=scope)
            if known:
                return pairs[0][1]()
            del pairs[0]
        if default is None:
            raise ValueError("pred_fn_pairs: no predicate holds, and there is no default")
        return default()


# -- deprecation -----------------------------------------------------------------------------------------------------


def deprecated(date: Any, instructions: str, warn_once: bool = True) -> Any:
    """Decorates functions that say, once, what to use instead."""
    if not instructions:
        raise ValueError("instructions: say what to use instead")

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            name = f"{function.__module__}.{function.__qualname__}"
            if not (warn_once and name in _said):
                _said.add(name)
                log().warning("%s is deprecated: %s", name, instructions)
            return function(*args, **kwargs)

        return called

    return decorate


_said: set[str] = set()


def deprecated_args(date: Any, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any) -> Any:
    """Decorates functions that say, once, what to use instead of arguments."""
    tell_once = kwargs.pop("warn_once", True)
    if kwargs:
        raise TypeError(f"deprecated_args takes no argument '{next(iter(kwargs))}'")
    old = [each if isinstance(each, str) else each[0] for each in deprecated_arg_names_or_tuples]
    return _watch(old, lambda _name, _value: True, instructions, tell_once)


def deprecated_arg_values(date: Any, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any) -> Any:
    """Decorates functions that say, once, what to use instead of values of arguments."""
    return _watch(
        list(deprecated_kwargs), lambda name, value: deprecated_kwargs[name] == value, instructions, warn_once
    )


def _watch(names: list[str], concerns: Callable[[str, Any], bool], instructions: str, tell_once: bool) -> Any:
    import inspect

    def decorate(function: Any) -> Any:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(*args, **kwargs).arguments
            for name in names:
                key = f"{function.__module__}.{function.__qualname__}({name})"
                if name in given and concerns(name, given[name]) and not (tell_once and key in _said):
                    _said.add(key)
                    log().warning("%s is deprecated: %s", key, instructions)
            return function(*args, **kwargs)

        return called

    return decorate
