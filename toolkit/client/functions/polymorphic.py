"""Functions that are made anew for each kind of arguments: what tf.function is while a graph is made.

A call adds a PartitionedCall (StatefulPartitionedCall where the function has effects) to the default graph. Tensors and
arrays among the arguments become the function's own; other values are part of the function, so that another value makes
another function. Variables are those of the graph around.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, cast

import numpy as np

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions.argument_kinds import Place, key_of, like_signature, spec_of, structure_key
from toolkit.client.functions.concrete import ConcreteFunction
from toolkit.client.functions.graph import FunctionGraph
from toolkit.client.functions.trace import Argument, function_name, trace
from toolkit.client.structures import nest
from toolkit.client.structures.leaves import packed_like, tensors_of
from toolkit.client.structures.type_specs import TensorSpec
from toolkit.errors import ArgumentTypeError, ArgumentValueError, GraphmillError
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

_VARIABLES = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)


class PolymorphicFunction:
    """A Python function that becomes a ConcreteFunction for each kind of arguments, when it is first called with them.

    Args:
        python_function: takes and returns structures of tensors and other values.
        name: of the functions in the library; default: the Python function's.
        input_signature: a TensorSpec for each argument (in structures like theirs): there is one function only, and
            what is given is converted to these types.
        reduce_retracing: where only shapes differ from those before, the next function is for all of them.

    Raises:
        TypeError: `python_function` is no function, or the signature holds something else than TensorSpecs.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        name: str | None = None,
        input_signature: Sequence[Any] | None = None,
        reduce_retracing: bool = False,
    ):
        if not callable(python_function):
            raise ArgumentTypeError(f"{python_function!r} is no function; give one that takes and returns tensors")
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        for spec in nest.flatten(self.input_signature or ()):
            if not isinstance(spec, TensorSpec):
                raise ArgumentTypeError(f"input_signature: expected TensorSpecs, got {spec!r}")
        self._name = name or getattr(python_function, "__name__", type(python_function).__name__)
        self._signature = inspect.signature(python_function)
        self._reduce_retracing = reduce_retracing
        self._made: weakref.WeakKeyDictionary[Graph, dict[Any, ConcreteFunction]] = weakref.WeakKeyDictionary()
        self._seen: dict[Any, list[TensorSpec]] = {}
        self._bound: weakref.WeakKeyDictionary[Any, PolymorphicFunction] = weakref.WeakKeyDictionary()
        self._count = 0
        self._has_variables = False
        self.__wrapped__ = python_function
        self.__name__ = self._name
        self.__doc__ = getattr(python_function, "__doc__", None)

    @property
    def name(self) -> str:
        return self._name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method: the function of each instance is its own."""
        if instance is None:
            return self
        found = self._bound.get(instance)
        if found is None:
            method = MethodType(self.python_function, instance)
            found = PolymorphicFunction(method, self._name, self.input_signature, self._reduce_retracing)
            self._bound[instance] = found
        return found

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function has become a function."""
        return self._count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in the default graph.

        Raises:
            TypeError: the arguments are not the function's, or do not fit its signature; it returns no tensors.
            ValueError: it makes variables whenever it becomes a function.
        """
        values, tensors, specs = self._taken_apart(args, kwargs)
        return self._for(values, specs).call(tensors)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for arguments like these; a TensorSpec may stand for a tensor.

        Raises: as a call.
        """
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        values, _, specs = self._taken_apart(args, kwargs)
        return self._for(values, specs)

    # -- arguments -------------------------------------------------------------------------------------------

    def _taken_apart(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Tensor], list[TensorSpec]]:
        """Arguments by name with a TensorSpec in the place of each tensor; the tensors; their specs."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{self._name}{self._signature}: {error}") from None
        bound.apply_defaults()
        values: dict[str, Any] = dict(bound.arguments)
        if self.input_signature is not None:
            values = self._as_signed(values)
        tensors: list[Tensor] = []
        specs: list[TensorSpec] = []

        def spec_of(name: str, leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray | np.generic):
                leaf = convert_to_tensor(leaf)
            if isinstance(leaf, TensorSpec):
                specs.append(TensorSpec(leaf.shape, leaf.dtype, leaf.name or name))
                return Place(leaf, specs[-1:])
            parts = [part for part in tensors_of(leaf) if isinstance(part, Tensor)]
            if not parts:
                return leaf
            tensors.extend(parts)
            own = [TensorSpec(part.static_shape, part.dtype.base, name) for part in parts]
            specs.extend(own)
            return Place(leaf, own)

        placed: dict[str, Any] = {}
        for name, value in values.items():
            kind = self._signature.parameters[name].kind
            parts = [(name, value)]
            if kind is inspect.Parameter.VAR_POSITIONAL:
                parts = [(f"{name}_{i}", item) for i, item in enumerate(value)]
            elif kind is inspect.Parameter.VAR_KEYWORD:
                parts = sorted(value.items())
            flat = [[spec_of(part, leaf) for leaf in nest.flatten(item)] for part, item in parts]
            made = [nest.pack_sequence_as(item, leaves) for (_, item), leaves in zip(parts, flat, strict=True)]
            if kind is inspect.Parameter.VAR_POSITIONAL:
                placed[name] = tuple(made)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                placed[name] = dict(zip((part for part, _ in parts), made, strict=True))
            else:
                placed[name] = made[0]
        return placed, tensors, specs

    def _as_signed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Arguments converted to what the signature says.

        Raises:
            TypeError: they do not fit it.
        """
        signed = list(self.input_signature or ())
        out: dict[str, Any] = {}
        for name, value in values.items():
            kind, default = self._signature.parameters[name].kind, self._signature.parameters[name].default
            if kind is inspect.Parameter.VAR_POSITIONAL:
                wanted, signed = tuple(signed[: len(value)]), signed[len(value) :]
            elif not signed and value is default:
                out[name] = value
                continue
            elif signed:
                wanted = signed.pop(0)
            else:
                raise ArgumentTypeError(f"{self._name}: its input_signature says nothing of the argument '{name}'")
            out[name] = like_signature(value, wanted, name)
        if signed:
            raise ArgumentTypeError(f"{self._name}: its input_signature has {len(signed)} more than it has arguments")
        return out

    # -- functions -------------------------------------------------------------------------------------------

    def _for(self, values: dict[str, Any], specs: list[TensorSpec]) -> ConcreteFunction:
        known = self._made.setdefault(get_default_graph(), {})
        if self.input_signature is not None:
            specs = [
                TensorSpec(signed.shape, signed.dtype, signed.name or spec.name)
                for signed, spec in zip(nest.flatten(self.input_signature), specs, strict=True)
            ]
            key: Any = ()
        else:
            fixed = tuple(key_of(leaf) for leaf in nest.flatten(values))
            structure = structure_key(values)
            if self._reduce_retracing:
                specs = self._widened((structure, fixed), specs)
            key = (structure, fixed, tuple(specs))
        if key not in known:
            known[key] = self._made_for(values, specs)
        return known[key]

    def _widened(self, key: Any, specs: list[TensorSpec]) -> list[TensorSpec]:
        """Specs that hold for these tensors and those before them."""
        before = self._seen.get(key)
        if before is not None and all(a.dtype is b.dtype for a, b in zip(before, specs, strict=True)):
            specs = [cast("TensorSpec", b.most_specific_compatible_type(a)) for a, b in zip(before, specs, strict=True)]
        self._seen[key] = specs
        return specs

    def _made_for(self, values: dict[str, Any], specs: list[TensorSpec]) -> ConcreteFunction:
        graph = get_default_graph()
        before = _variables_of(graph)
        made = self._traced(values, specs)
        if len(_variables_of(graph)) > len(before):
            # what makes variables must keep them: it is called once more to see whether it does
            again = self._has_variables
            self._has_variables = True
            before = _variables_of(graph)
            if not again:
                graph.core.library.remove(made.name.decode())
                made = self._traced(values, specs)
                again = len(_variables_of(graph)) > len(before)
            if again:
                raise ArgumentValueError(
                    f"{self._name} makes variables whenever it becomes a function; make them once, outside or behind "
                    "a test whether they are there"
                )
        return made

    def _traced(self, values: dict[str, Any], specs: list[TensorSpec]) -> ConcreteFunction:
        self._count += 1
        arguments: list[Argument] = [(spec.name or "args", spec.dtype, Shape(spec.parts()[1])) for spec in specs]

        def call(_: FunctionGraph, tensors: list[Tensor]) -> Any:
            rest = list(tensors)

            def filled(leaf: Any) -> Any:
                if not isinstance(leaf, Place):
                    return leaf
                own = [rest.pop(0) for _ in leaf.specs]
                return own[0] if isinstance(leaf.like, TensorSpec) else packed_like([leaf.like], own)[0]

            given = self._bound_again({name: nest.map_structure(filled, value) for name, value in values.items()})
            return self.python_function(*given.args, **given.kwargs)

        traced = trace(self.python_function, arguments, call=call, convert=self._results, name=function_name(self))
        shown = self._bound_again(nest.map_structure(spec_of, values))
        used = [variable for variable in _variables_of(get_default_graph()) if variable.handle in traced.captured]
        return ConcreteFunction(traced, (shown.args, shown.kwargs), used, values)

    def _bound_again(self, values: dict[str, Any]) -> inspect.BoundArguments:
        bound = self._signature.bind_partial()
        bound.arguments.update(values)
        return bound

    def _results(self, returned: Any) -> list[Tensor]:
        tensors: list[Tensor] = []
        for leaf in nest.flatten(returned):
            for part in [] if leaf is None else tensors_of(leaf):
                if isinstance(part, Operation):
                    raise self._no_tensor(part)
                try:
                    tensors.append(convert_to_tensor(part))
                except (GraphmillError, TypeError, ValueError):
                    raise self._no_tensor(part) from None
        return tensors

    def _no_tensor(self, value: Any) -> Exception:
        return ArgumentTypeError(
            f"{self._name} returns {value!r}; a function returns tensors, None, or structures of them"
        )


def _variables_of(graph: Graph) -> list[Any]:
    return [variable for key in _VARIABLES for variable in graph.get_collection(key)]
