"""Gradients of random programs, first and second order, are TensorFlow's: loops, functions, arrays, rows."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.client.client_programs import tf1_semantics
from tests.client.functions.test_functional_flow import functions
from tests.client.gradients.gradient_programs import FEEDS, Choices, GradientProgram
from toolkit import tensorflow as ours
from toolkit.tensorflow.families.framework import functions as own_functions

pytestmark = pytest.mark.tensorflow
#: examples of each kind for every run, and for the long one
FEW, MANY = 12, 150


def _numbers(tf: Any, function: Any, choices: Choices, functional: bool) -> list[Any] | None:
    """What a program computes; None where TensorFlow cannot run it."""
    with tf.Graph().as_default():
        fetches = GradientProgram(tf, function, choices, functional).build()
        start = tf.global_variables_initializer()
        with tf.Session() as session:
            session.run(start)
            try:
                return session.run(fetches, {f"{name}:0": value for name, value in FEEDS.items()})
            except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
                if tf is ours:
                    raise
                return None  # TensorFlow's optimizer breaks some graphs, and its functions lack some gradients


def compare(tf: ModuleType, draw: Callable[[int], int], functional: bool) -> None:
    choices = Choices(draw)
    theirs = importlib.import_module("tensorflow.python.framework.function")
    with functions(tf) if functional else tf1_semantics(tf):
        wanted = _numbers(tf.compat.v1, theirs, choices, functional)
        found = _numbers(ours, own_functions, choices.again(), functional)
    assert found is not None
    assert wanted is None or len(found) == len(wanted)
    for a, b in zip(found, found if wanted is None else wanted, strict=True):
        # float64: some hundred operations on numbers near 1, second derivatives among them, whose sums may cancel
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10, err_msg=f"{choices.made}")


def _examples(count: int) -> Any:
    def decorated(test: Any) -> Any:
        checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
        # an example takes a second or two: what fails is told as it is, for making it small would take hundreds
        phases = [Phase.explicit, Phase.reuse, Phase.generate]
        return settings(max_examples=count, deadline=None, suppress_health_check=checks, phases=phases)(
            given(data=st.data(), functional=st.booleans())(test)
        )

    return decorated


def _draw(data: st.DataObject) -> Callable[[int], int]:
    return lambda count: data.draw(st.integers(0, count - 1))


@_examples(FEW)
def test_few(tf: ModuleType, data: st.DataObject, functional: bool) -> None:
    compare(tf, _draw(data), functional)


@pytest.mark.long
@_examples(MANY)
def test_many(tf: ModuleType, data: st.DataObject, functional: bool) -> None:
    compare(tf, _draw(data), functional)
