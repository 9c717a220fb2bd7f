"""A combination of fetches and feeds looked up once: what `Session.run` needs when it is asked for the same again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from toolkit.client.construction.elements import GraphElement
from toolkit.graph.node import Node, Output
from toolkit.runtime.sessions.feeds import feed_array, placeholder_shape
from toolkit.runtime.sessions.fetches import Fetches
from toolkit.runtime.steps.compiled import CompiledStep


class Feeds:
    """Converts values for a fixed list of tensors; see `feed_array` for `casts`."""

    def __init__(self, outputs: Sequence[Output], casts: bool = False):
        self._casts = casts
        self._specs = [(output, output.dtype.base, placeholder_shape(output)) for output in outputs]
        self._plain = [
            (dtype.numpy if dtype.kind not in "rvs" else None, shape.dims) for _, dtype, shape in self._specs
        ]

    def arrays(self, values: Iterable[Any]) -> list[Any]:
        """The arrays for values in the order of the tensors.

        Raises:
            UsageError: a value does not fit its tensor.
        """
        arrays: list[Any] = []
        for value, (dtype, dims), (output, _, shape) in zip(values, self._plain, self._specs, strict=True):
            if isinstance(value, _ARRAYS):
                array = cast("Any", value)
                if array.dtype == dtype and _fits(array.shape, dims):
                    arrays.append(array)
                    continue
            arrays.append(feed_array(output, value, shape, casts=self._casts))
        return arrays


_SINGLE = (GraphElement, Output, Node)
_ARRAYS = (np.ndarray, np.generic)  # a union would be made anew in every step


def _fits(shape: tuple[int, ...], dims: tuple[int | None, ...] | None) -> bool:
    if dims is None or shape == dims:
        return True
    return len(shape) == len(dims) and all(
        wanted is None or wanted == size for size, wanted in zip(shape, dims, strict=True)
    )


class PreparedStep:
    """One combination.

    Attributes:
        wanted: the fetches taken apart.
        compiled: the executors.
        feeds: the conversion of what is fed.
    """

    __slots__ = ("compiled", "feeds", "wanted")

    def __init__(self, wanted: Fetches, compiled: CompiledStep, outputs: Sequence[Output], casts: bool = False):
        self.wanted = wanted
        self.compiled = compiled
        self.feeds = Feeds(outputs, casts)


class PreparedCache:
    """The combinations that were asked for, by the very objects of the call."""

    _LIMIT = 256

    def __init__(self, make: Callable[[Any, Sequence[Any]], PreparedStep]):
        self._make = make
        self._found: dict[Any, PreparedStep] = {}

    def get(self, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> PreparedStep:
        """The combination for a fetch structure and the keys of a feed dict."""
        keys = tuple(feed_dict) if feed_dict else ()
        kind: object = cast("Any", type(fetches))
        if kind is str or isinstance(fetches, _SINGLE):
            key: Any = (fetches, keys)
        elif kind is list or kind is tuple:
            key = (kind, *fetches, keys)
        else:
            return self._make(fetches, keys)
        try:
            found = self._found.get(key)
        except TypeError:  # a structure within the structure
            return self._make(fetches, keys)
        if found is None:
            found = self._make(fetches, keys)
            if len(self._found) >= self._LIMIT:
                self._found.clear()
            self._found[key] = found
        return found
