"""What the layers share: names of variables, collections, sizes, conditions that may be known."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, cast

from toolkit.client.construction import static_values
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.model_variables import model_variable
from toolkit.graph.shape import Shape

#: a convolution's or a dense layer's variables, and what they are called here
WEIGHT_NAMES = {"bias": "biases", "kernel": "weights"}
#: what weights and biases start with where nobody says
XAVIER = initializers.glorot_uniform(None)
ZEROS = initializers.Zeros()
ONES = initializers.Ones()
_ALIASES = "toolkit.client.scoped_layers.aliases"


def variable_getter(names: dict[str, str] | None = None) -> Callable[..., Any]:
    """A custom getter that makes `model_variable`s, some of them under other names."""

    def get(getter: Callable[..., Any], name: str, *_: Any, **given: Any) -> Any:
        path, slash, last = name.rpartition("/")
        keys = ("shape", "dtype", "initializer", "regularizer", "trainable", "collections", "caching_device")
        passed = {key: given[key] for key in (*keys, "partitioner", "use_resource") if key in given}
        return model_variable(path + slash + (names or {}).get(last, last), custom_getter=getter, **passed)

    return get


# -- collections -----------------------------------------------------------------------------------------------------


def collections_of(variables_collections: Any, name: str) -> Any:
    """The collections of one variable: of a dictionary by its name, or of all."""
    if isinstance(variables_collections, dict):
        return cast("Any", variables_collections).get(name)
    return variables_collections


def add_to_collections(variable: Any, variables_collections: Any, name: str) -> None:
    """Put a variable, or the parts of one, into its collections, once."""
    graph = get_default_graph()
    parts: list[Any] = list(getattr(variable, "parts", None) or [variable])
    wanted: Any = collections_of(variables_collections, name) or ()
    for collection in [wanted] if isinstance(wanted, str) else wanted:
        held = graph.get_collection_ref(collection)
        held.extend(part for part in parts if not any(part is other for other in held))


def collected(outputs_collections: Any, alias: str, outputs: Any) -> Any:
    """The outputs, in their collections and under their alias, where there are any."""
    if outputs_collections:
        append_tensor_alias(outputs, alias)
        get_default_graph().add_to_collections(outputs_collections, outputs)
    return outputs


def _aliases() -> dict[Any, list[str]]:
    return get_default_graph().extras.setdefault(_ALIASES, {})


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Give a tensor one more name; `get_tensor_aliases` says all."""
    _aliases().setdefault(id(tensor), []).append(alias.removesuffix("/"))
    _kept().append(tensor)
    return tensor


def _kept() -> list[Any]:
    """What is known by its address lives as long as the graph."""
    return get_default_graph().extras.setdefault(_ALIASES + ".kept", [])


def get_tensor_aliases(tensor: Any) -> list[str]:
    """The aliases of a tensor, or its own name, where it has none."""
    found = _aliases().get(id(tensor))
    return list(found) if found else [tensor.name.removesuffix(":0")]


def gather_tensors_aliases(tensors: Any) -> list[str]:
    """The aliases of all tensors, one after the other."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> OrderedDict[str, Any]:
    """Aliases to the tensors of a collection, in its order."""
    graph = get_default_graph()
    pairs = [(alias, tensor) for tensor in graph.get_collection(collection) for alias in get_tensor_aliases(tensor)]
    if clear_collection:
        graph.clear_collection(collection)
    return OrderedDict(pairs)


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """`collected`, as TensorFlow calls it."""
    return collected(collections, alias, outputs)


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """`collections_of`, as TensorFlow calls it."""
    return collections_of(variables_collections, name)


# -- sizes -----------------------------------------------------------------------------------------------------------


def channels_first(data_format: Any, known: tuple[Any, ...]) -> bool:
    """Whether channels come first in a layout.

    Raises:
        ValueError: it is none of the layouts that are known.
    """
    if data_format not in known:
        raise ValueError(f"data_format: expected {' or '.join(map(str, known))}, got {data_format!r}")
    return bool(data_format) and data_format.startswith("NC")


def keras_layout(data_format: Any, known: tuple[Any, ...]) -> str:
    """channels_first or channels_last, of NCHW or NHWC."""
    return "channels_first" if channels_first(data_format, known) else "channels_last"


def known_size(x: Tensor, axis: int, min_rank: int = 1) -> int:
    """The size of an axis.

    Raises:
        ValueError: the rank or the size is not known, or the rank is less.
    """
    shape = x.static_shape
    if shape.rank is None:
        raise ValueError(f"the shape of '{x.name}' is not known; set it")
    if shape.rank < min_rank:
        raise ValueError(f"'{x.name}' has {shape.rank} dimensions; expected {min_rank} or more")
    size = shape[axis]
    if size is None:
        raise ValueError(f"the size of dimension {axis} of '{x.name}' is not known: {shape}; set its shape")
    return size


def known_sizes(x: Tensor, shape: Shape, what: str) -> list[int]:
    """Sizes of several axes.

    Raises:
        ValueError: one of them is not known.
    """
    if not shape.is_fully_defined:
        raise ValueError(f"{what} of '{x.name}' are not known: {x.static_shape}; set its shape")
    return shape.as_list()


def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """Two numbers, of one or two.

    Raises:
        ValueError: there are more, or fewer.
    """
    first, second = n_positive_integers(2, int_or_tuple)
    return first, second


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """`n` whole numbers, of one or of as many.

    Raises:
        ValueError: there are more or fewer, or one is not positive.
    """
    given = (
        tuple(int(each) for each in cast("Iterable[Any]", value)) if isinstance(value, Iterable) else (int(value),) * n
    )
    if len(given) != n or not all(each >= 1 for each in given):
        raise ValueError(f"expected {n} positive whole numbers, got {value}")
    return given


def size_along(shape: Any, axis: int, min_rank: int) -> int:
    """The size of a shape along an axis.

    Raises:
        ValueError: the shape has fewer axes, or it is not known there.
    """
    known = as_shape(shape)
    if known.dims is None or len(known.dims) < min_rank:
        raise ValueError(f"expected a shape of {min_rank} sizes at least, not {known}")
    size = known.dims[axis]
    if size is None:
        raise ValueError(f"the size along axis {axis} must be known; the shape is {known}")
    return size


def first_dimension(shape: Any, min_rank: int = 1) -> int:
    """The first size of a shape, which must be known."""
    return size_along(shape, 0, min_rank)


def last_dimension(shape: Any, min_rank: int = 1) -> int:
    """The last size of a shape, which must be known."""
    return size_along(shape, -1, min_rank)


def channel_dimension(shape: Any, data_format: str, min_rank: int = 1) -> int:
    """The size of a shape along the channels, which must be known: the second, "channels_first", or the last."""
    return size_along(shape, 1 if data_format == "channels_first" else -1, min_rank)


# -- conditions ------------------------------------------------------------------------------------------------------


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """What is known of a flag while the graph is made, or None.

    Raises:
        ValueError: it is None, or has another type than `dtype`.
    """
    if value_or_tensor_or_var is None:
        raise ValueError("expected a value, a tensor or a variable, got None")
    if not isinstance(value_or_tensor_or_var, Tensor | BaseVariable):
        return value_or_tensor_or_var
    if dtype is not None and value_or_tensor_or_var.dtype.base is not dtype:
        raise ValueError(f"'{value_or_tensor_or_var.name}' has type {value_or_tensor_or_var.dtype}, not {dtype}")
    if isinstance(value_or_tensor_or_var, BaseVariable):
        return None
    return static_values.static_value(value_or_tensor_or_var)


def smart_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None) -> Any:
    """A conditional, or what the one function gives, where it is known which."""
    known = constant_value(pred)
    if known is None:
        return control_flow.cond(pred, fn1, fn2, name=name)
    return fn1() if known else fn2()


def training_flag(is_training: Any) -> Any:
    """A flag as layers take it: a bool where its value is known, otherwise a tensor."""
    known = constant_value(is_training)
    return convert_to_tensor(is_training) if known is None else bool(known)
