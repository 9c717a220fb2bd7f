"""Functions that a program defines and calls by name: what TensorFlow 1 calls Defun.

A call is an operation whose type is the function's name. The body is made when the function is first used, with what
it takes of the graph around as arguments behind its own (by value, on request: made in it once more); variables are
made in the graph around, in the variable scope that is open at that time.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from schemas import attr_value_pb2, function_pb2
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions import CALLED
from toolkit.client.functions.definition import function_def, name_ends
from toolkit.client.functions.graph import FunctionGraph, may_be_made_again
from toolkit.client.variables import store
from toolkit.errors import GraphError, UsageError, did_you_mean
from toolkit.graph import opdefs
from toolkit.graph.attrs import encode
from toolkit.graph.dtypes import DType, from_enum
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import UNKNOWN

_VARIABLE_STORE = store.__name__
_VARIABLE_COLLECTIONS = (
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES, GraphKeys.MODEL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES,
)  # fmt: skip


class _BodyGraph(FunctionGraph):
    """A body while it is made: captures have names of the places where they are used, random ops no graph's seed."""

    def __init__(self, name: str, outer: Graph, variables_by_value: bool):
        super().__init__(name, outer)
        self.seed = None
        self.collections = {key: outer.collections.setdefault(key, []) for key in _VARIABLE_COLLECTIONS}
        self.extras[_VARIABLE_STORE] = store.function_store(outer, self._variable)
        self._scope_around = store.scope_of(outer)
        self._variables_by_value = variables_by_value

    @property
    def variables_graph(self) -> Graph:
        return self  # `_variable` goes to the graph around

    def capture(self, tensor: Tensor) -> Tensor:
        """As in any function; `captured` has the tensors themselves, wherever they are, as calls are elsewhere, too."""
        if tensor.graph is self:
            return tensor
        if tensor not in self.captured:
            inside = self.captured[tensor] = self.take_in(tensor)
            self.hold_as(tensor, inside)
        return self.captured[tensor]

    def take_in(self, tensor: Tensor) -> Tensor:
        attrs = {"dtype": encode(tensor.dtype.base), "shape": encode(tensor.static_shape)}
        with self.control_dependencies(None):
            return self.create_node(opdefs.get("Placeholder"), [], attrs, "Placeholder").outputs[0]

    def _variable(self, make: Callable[..., Any], name: str, **settings: Any) -> Any:
        """A variable of the graph around; of a resource variable, what it holds."""
        kept = ("shape", "dtype", "initializer", "trainable", "collections", "use_resource")
        given = {key: settings[key] for key in kept if key in settings}
        scope = replace(self._scope_around, reuse=settings.get("reuse", False))
        with self.outer.as_default():
            variable = scope.get_variable(name, **given)
            if self._variables_by_value and variable.is_resource:
                return variable.value()
        return variable


class _CopyingGraph(_BodyGraph):
    """A body that takes nothing in: what it uses is made in it once more."""

    def __init__(self, name: str, outer: Graph, variables_by_value: bool):
        super().__init__(name, outer, variables_by_value)
        self._copies: dict[Operation, Operation] = {}

    def take_in(self, tensor: Tensor) -> Tensor:
        return self._again(tensor.op).outputs[tensor.index]

    def _again(self, op: Operation) -> Operation:
        if op not in self._copies:
            may_be_made_again(op)
            inputs = [self.capture(tensor) for tensor in op.inputs]
            attrs = {key: op.node.attrs.proto(key) for key in op.node.attrs}
            self._copies[op] = self.create_node(op.op_def, inputs, attrs, op.name)
        return self._copies[op]


class DefinedFunction:
    """A Python function with the types of its arguments, as a function of the graphs that it is called in.

    Args:
        python_function: takes a tensor for each type and returns one, a list of them, or None.
        argument_names: where there are fewer than types, the others are arg1, arg2, ...
        name: of the function; default: the Python function's, with a hash of what it computes.
        gradient: the function (arguments, gradients of the results) -> gradients of the arguments.
        python_gradient: adds the gradient's operations, as a registered gradient function does, at each call.
        result_names: of the results; default: those of their operations.
        shape_function: of a call: the shapes of its results.
        by_value: make what is captured in the body once more instead of taking it as an argument.
        variables_by_value: of resource variables made inside, take what they hold, read outside.
        attrs: of the function (noinline).

    Raises:
        UsageError: an attribute is unknown.
    """

    def __init__(
        self,
        python_function: Callable[..., Any] | None,
        argument_names: Sequence[str],
        types: Sequence[Any],
        *,
        name: str | None = None,
        gradient: DefinedFunction | None = None,
        python_gradient: Callable[..., Any] | None = None,
        result_names: Sequence[str] | None = None,
        shape_function: Callable[[Operation], Sequence[Any]] | None = None,
        by_value: bool = False,
        variables_by_value: bool = True,
        attrs: Mapping[str, Any] | None = None,
    ):
        self.types: list[DType] = [as_dtype(each).base for each in types]
        self.gradient = gradient
        self.python_gradient = python_gradient
        self._function = python_function
        self._argument_names = [*argument_names, *(f"arg{i}" for i in range(len(argument_names), len(self.types)))]
        self._name = name
        self._result_names = result_names
        self._shape_function = shape_function
        self._by_value = by_value
        self._variables_by_value = variables_by_value
        self._attrs = function_attrs(dict(attrs or {}), "a function")
        self._definition: function_pb2.FunctionDef | None = None
        self._device = get_default_graph().innermost_device
        self._inner: list[DefinedFunction] = []
        self.captured: list[Tensor] = []
        self.stateful: list[tuple[str, str]] = []

    @classmethod
    def of(cls, definition: function_pb2.FunctionDef, gradient: DefinedFunction | None = None) -> DefinedFunction:
        """One that is defined already."""
        signature = definition.signature
        names, types = [arg.name for arg in signature.input_arg], [from_enum(arg.type) for arg in signature.input_arg]
        made = cls(None, names, types, name=signature.name, gradient=gradient)
        made._definition = definition
        return made

    @property
    def is_made(self) -> bool:
        return self._definition is not None

    @property
    def name(self) -> str:
        """The name in the library; makes the body, which names are made of."""
        return self.definition.signature.name

    @property
    def definition(self) -> function_pb2.FunctionDef:
        """The FunctionDef; the body is made when it is first asked for.

        Raises:
            GraphError: the Python function returns None among others, or what cannot become a tensor.
        """
        if self._definition is None:
            self._definition = self._made()
        return self._definition

    @property
    def result_types(self) -> list[DType]:
        return [from_enum(arg.type) for arg in self.definition.signature.output_arg]

    def add_to(self, graph: Graph) -> None:
        """Put the function, those it calls and its gradient into a graph's library.

        Raises:
            GraphError: another function there has its name.
        """
        definition, library = self.definition, graph.core.library
        if self.name in library and library.function(self.name) != definition:
            raise GraphError(f"another function of this graph is named '{self.name}'; give func_name")
        for inner in self._inner:
            inner.add_to(graph)
        library.add(definition)
        graph.extras.setdefault(CALLED, {})[self.name] = self
        if self.gradient is not None:
            self.gradient.add_to(graph)
            library.gradients[self.name] = self.gradient.name

    def call(self, arguments: Sequence[Any], name: str | None, attrs: Mapping[str, Any]) -> Operation:
        """Add a call to the default graph.

        Raises:
            UsageError: the number of arguments is wrong, or an attribute unknown.
        """
        graph = get_default_graph()
        self.add_to(graph)
        given = [*(convert_to_tensor(each) for each in arguments), *self.captured]
        return add_call(self.definition.signature, given, name, attrs, self._shape_function)

    # -- making ----------------------------------------------------------------------------------------------

    def _made(self) -> function_pb2.FunctionDef:
        outer = get_default_graph()
        assert self._function is not None
        base = self._name or getattr(self._function, "__name__", type(self._function).__name__)
        body = (_CopyingGraph if self._by_value else _BodyGraph)(base, outer, self._variables_by_value)
        with body.as_default(), body.device(self._device) if self._device is not None else nullcontext():
            tensors = [
                self._argument(body, name, dtype) for name, dtype in zip(self._argument_names, self.types, strict=True)
            ]
            results = self._results(body, self._function(*tensors), base)
        called: dict[str, DefinedFunction] = body.extras.get(CALLED, {})
        self._inner = list(called.values())
        self.captured = [] if self._by_value else list(body.captured)
        self.stateful = [(op.name, op.type) for op in body.get_operations() if op.op_def.is_stateful]
        definition = self._written(body, results, base)
        if self._name is None:
            named_after = base + (f"_{self.gradient.name}" if self.gradient is not None else "")
            definition.signature.name = f"{named_after}_{_hash_of(definition)}"
        return definition

    @staticmethod
    def _argument(body: FunctionGraph, name: str, dtype: DType) -> Tensor:
        attrs = {"dtype": encode(dtype), "shape": encode(UNKNOWN)}
        tensor = body.create_node(opdefs.get("Placeholder"), [], attrs, name).outputs[0]
        body.args.append(tensor)
        return tensor

    @staticmethod
    def _results(body: FunctionGraph, returned: Any, base: str) -> list[Tensor]:
        if returned is None or isinstance(returned, Operation):
            return []
        listed: list[Any] = list(returned) if isinstance(returned, list | tuple) else [returned]  # type: ignore[arg-type]
        if any(each is None for each in listed):
            raise GraphError(f"the function '{base}' returns None among its results; return tensors")
        return [body.capture(convert_to_tensor(each)) for each in listed]

    def _written(self, body: FunctionGraph, results: Sequence[Tensor], base: str) -> function_pb2.FunctionDef:
        names = self._result_names
        if names is not None and len(names) != len(results):
            raise UsageError(f"'{base}' returns {len(results)} tensor(s) and has {len(names)} names for them")
        given = [*body.args, *(() if self._by_value else body.captured.values())]
        args, named = name_ends(given, results, names)
        skipped = {tensor.op for tensor in given}
        operations = [op for op in body.get_operations() if op not in skipped]
        definition = function_def(base, operations, args, named)
        if self._function is not None and self._function.__doc__:
            definition.signature.description = self._function.__doc__
        for key, value in self._attrs.items():
            definition.attr[key].CopyFrom(value)
        for i, tensor in enumerate(given):
            if tensor.dtype.base.name not in ("resource", "variant"):
                encode([tensor.static_shape], definition.arg_attr[i].attr["_output_shapes"])
        return definition


class OverloadedFunction:
    """A Python function that becomes a function anew for each combination of types that it is called with.

    The arguments are those of `DefinedFunction`, without types.

    Attributes:
        defined_as: the class of the functions it makes.
    """

    defined_as: type[DefinedFunction] = DefinedFunction

    def __init__(
        self,
        python_function: Callable[..., Any],
        argument_names: Sequence[str],
        gradient: OverloadedFunction | None = None,
        **settings: Any,
    ):
        self._function = python_function
        self._argument_names = argument_names
        self._gradient = gradient
        self._settings = settings
        self._made: dict[tuple[DType, ...], DefinedFunction] = {}

    def of_types(self, types: Sequence[DType]) -> DefinedFunction:
        """The function of these types; made when they come for the first time."""
        key = tuple(types)
        found = self._made.get(key)
        if found is None:
            settings = dict(self._settings)
            if settings.get("name") is not None:
                settings["name"] = "_".join([settings["name"], *(dtype.name for dtype in types)])
            found = self._made[key] = self.defined_as(self._function, self._argument_names, types, **settings)
            if self._gradient is not None:
                found.gradient = self._gradient.of_types([*types, *found.result_types])
        return found

    def call(self, arguments: Sequence[Any], name: str | None, attrs: Mapping[str, Any]) -> Operation:
        """Add a call to the default graph (`DefinedFunction.call`)."""
        tensors = [convert_to_tensor(each) for each in arguments]
        return self.of_types([tensor.dtype.base for tensor in tensors]).call(tensors, name, attrs)


_KEYWORDS = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameters_of(python_function: Any, count: int | None) -> list[str]:
    """The names of the arguments of a function that gets `count` tensors; None: as many as it takes.

    Raises:
        UsageError: it is no function, takes another number, or has defaults or keywords.
    """
    if not callable(python_function):
        raise UsageError(f"{python_function!r} is no function; give one that takes and returns tensors")
    name = getattr(python_function, "__name__", repr(python_function))
    names: list[str] = []
    takes_more = False
    for parameter in inspect.signature(python_function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            takes_more = True
        elif parameter.kind in _KEYWORDS or parameter.default is not parameter.empty:
            raise UsageError(f"the argument '{parameter.name}' of {name} is a keyword or has a default; give neither")
        else:
            names.append(parameter.name)
    if count is not None and (count < len(names) or (count > len(names) and not takes_more)):
        more = " or more" if takes_more else ""
        raise UsageError(f"{name} takes {len(names)}{more} argument(s), and {count} type(s) are given for them")
    return names


def takes_nothing(python_function: Callable[..., Any]) -> bool:
    return not inspect.signature(python_function).parameters


def add_call(
    signature: Any,
    arguments: Sequence[Tensor],
    name: str | None,
    attrs: Mapping[str, Any],
    shape_function: Callable[[Operation], Sequence[Any]] | None = None,
) -> Operation:
    """Add an operation that calls a function of this signature, which may still be missing from the library.

    Raises:
        UsageError: the number of arguments is wrong, an attribute is unknown, or the shapes are not as many as results.
    """
    if len(arguments) != len(signature.input_arg):
        raise UsageError(f"'{signature.name}' takes {len(signature.input_arg)} argument(s), got {len(arguments)}")
    for arg, tensor in zip(signature.input_arg, arguments, strict=True):
        if tensor.dtype.base.enum != arg.type:
            wanted = from_enum(arg.type)
            raise UsageError(f"the argument '{arg.name}' of '{signature.name}' is {wanted}, got {tensor.dtype.base}")
    graph = get_default_graph()
    protos = function_attrs(dict(attrs), signature.name)
    op = graph.create_node(graph.core.op_def(signature.name), arguments, protos, name or signature.name)
    if shape_function is not None:
        shapes = shape_function(op)
        if len(shapes) != len(op.outputs):
            raise UsageError(f"{len(shapes)} shape(s) for the {len(op.outputs)} result(s) of '{signature.name}'")
        for tensor, shape in zip(op.outputs, shapes, strict=True):
            tensor.set_shape(shape)
    return op


_ATTRS = ("noinline", "compiled", "separate_compiled_gradients", "_implements", "_reference")


def function_attrs(given: dict[str, Any], name: str) -> dict[str, attr_value_pb2.AttrValue]:
    """Keywords of a function or call as attributes of nodes.

    Raises:
        UsageError: one is unknown.
    """
    out: dict[str, attr_value_pb2.AttrValue] = {}
    if given.get("noinline") is not None:
        out["_noinline"] = encode(bool(given["noinline"]))
    out["_disable_call_shape_inference"] = encode(True)
    if given.get("compiled") is not None:
        out["_XlaCompile"] = encode(bool(given["compiled"]))
        out["_XlaSeparateCompiledGradients"] = encode(bool(given.get("separate_compiled_gradients")))
        out["_XlaScope"] = encode(f"function_{name}".encode())
    for key, value in given.items():
        if key in ("_implements", "_reference") or key.startswith("experimental_"):
            out[key] = encode(value.encode() if isinstance(value, str) else value)
        elif key not in _ATTRS:
            raise UsageError(f"'{key}' is no setting of a function or call{did_you_mean(key, _ATTRS)}")
    return out


def _hash_of(definition: function_pb2.FunctionDef) -> str:
    """Eleven letters and digits that follow from what a function computes."""
    digest = hashlib.sha256(definition.SerializeToString(deterministic=True)).digest()[:8]
    return base64.b64encode(digest).decode().rstrip("=").translate(str.maketrans("+/", "aA"))


def functions_of(
    library: function_pb2.FunctionDefLibrary, kind: type[DefinedFunction] = DefinedFunction
) -> list[DefinedFunction]:
    """The functions of a library with their gradients, those that are gradients first.

    Raises:
        GraphError: a gradient is missing, or functions are gradients of each other in a circle.
    """
    definitions = {each.signature.name: each for each in library.function}
    gradients = {each.function_name: each.gradient_func for each in library.gradient}
    for pair in gradients.items():
        for name in pair:
            if name not in definitions:
                hint = did_you_mean(name, definitions)
                raise GraphError(f"the library names the function '{name}', which is not in it{hint}")
    made: dict[str, DefinedFunction] = {}
    left = list(definitions)
    while left:
        ready = [name for name in left if name not in gradients or gradients[name] in made]
        if not ready:
            raise GraphError(f"'{left[0]}' and its gradient are gradients of each other in a circle")
        for name in ready:
            made[name] = kind.of(definitions[name], made.get(gradients.get(name, "")))
        left = [name for name in left if name not in made]
    return list(made.values())
