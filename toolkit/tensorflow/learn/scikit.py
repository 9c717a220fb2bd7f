# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What of scikit-learn's estimators those of tf.contrib.learn share."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np


class NotFittedError(ValueError, AttributeError):
    """A model is asked before it is trained."""


class ParameterHolder:
    """An object whose parameters are those of its constructor."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; of estimators inside as well, "estimator__name"."""
        found: dict[str, Any] = {}
        for name in _parameters(type(self)):
            value = getattr(self, name, getattr(self, f"_{name}", None))
            found[name] = value
            if deep and isinstance(value, ParameterHolder):
                found.update({f"{name}__{key}": each for key, each in value.get_params().items()})
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters.

        Raises:
            ValueError: there is no such one.
        """
        there = self.get_params(deep=True)
        for key, value in params.items():
            outer, _, inner = key.partition("__")
            if outer not in there:
                raise ValueError(f"{type(self).__name__} has no parameter '{outer}'; it has: {', '.join(there)}")
            if inner:
                there[outer].set_params(**{inner: value})
            else:
                setattr(self, outer if hasattr(self, outer) else f"_{outer}", value)
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({shown})"


def _parameters(cls: type) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return sorted(name for name, each in inspect.signature(cls).parameters.items() if each.kind not in kinds)


def accuracy_score(y_true: Any, y_pred: Any) -> Any:
    """The share of labels that are predicted."""
    return np.average(np.asarray(y_true) == np.asarray(y_pred))


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of the squared differences."""
    return np.average((np.squeeze(y_true) - np.squeeze(y_pred)) ** 2)


def train_test_split(*arrays: Any, **options: Any) -> tuple[Any, ...]:
    """Each array in two, for training and for tests, by the same random rows."""
    test, train = options.pop("test_size", None), options.pop("train_size", None)
    share = train if train is not None else 0.75 if test is None else 1 - test
    count = arrays[0].shape[0]
    np.random.seed(options.pop("random_state", None))
    rows = np.random.permutation(count)
    at = int(share * count)
    return tuple(part for each in arrays for part in (each.take(rows[:at], axis=0), each.take(rows[at:], axis=0)))
