"""The device that needs no hardware: its memory, and a sample of the op suite through it."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, run_ours
from toolkit.errors import GraphError, InternalError, ResourceExhaustedError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.kernels import device_types, registry
from toolkit.kernels.null.memory import NullMemory, memory_of
from toolkit.kernels.registry import KernelNode

#: lists of cases of the op suite; every seventh is run
_LISTS = (
    ("nn.test_nn_conv", "conv2d_cases"), ("nn.test_nn_conv", "depthwise_cases"),
    ("nn.test_nn_activation", "activations"), ("nn.test_nn_activation", "losses"),
    ("nn.test_nn_activation", "norms"), ("nn.test_nn_pool", "cases"),
    ("images.test_image_resize", "CASES"), ("images.test_image_crop", "CASES"),
    ("math.test_math_composed", "chains"), ("nn.test_nn_dilation", "CASES"),
    ("images.test_image_nms", "CASES"),
)  # fmt: skip
_EVERY = 7


def _sample() -> Iterator[Any]:
    for module, name in _LISTS:
        found = getattr(importlib.import_module(f"tests.kernels.{module}"), name)
        cases: list[Case] = list(found() if callable(found) else found)
        for case in cases[::_EVERY]:
            if not case.error:
                yield pytest.param(case, id=f"{module}-{case.label}")


@pytest.mark.parametrize("case", list(_sample()))
def test_ops_give_what_the_cpu_gives(case: Case) -> None:
    ours = run_ours(case, "CPU", defining=True)
    theirs = run_ours(case, "NULL", defining=True)
    for expected, got in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_memory_is_counted_and_bounded() -> None:
    memory = NullMemory("/device:NULL:7", limit=1000)
    held = memory.copy_in(np.ones(200, np.float32))
    assert (memory.statistics().in_use, memory.statistics().peak) == (800, 800)
    with pytest.raises(ResourceExhaustedError, match="no room for 400 bytes: 800 of 1000 are in use"):
        memory.copy_in(np.ones(100, np.float32))
    np.testing.assert_array_equal(memory.copy_out(held), np.ones(200, np.float32))
    del held
    gc.collect()
    assert memory.statistics().in_use == 0
    memory.copy_in(np.ones(250, np.float32))


def test_nobody_looks_into_a_tensor_of_another() -> None:
    first, second = NullMemory("/device:NULL:0"), NullMemory("/device:NULL:1")
    held = first.copy_in(np.ones(3))
    assert (held.shape, held.dtype, held.nbytes) == ((3,), np.float64, 24)
    with pytest.raises(InternalError, match="host code looked into a tensor of /device:NULL:0"):
        np.asarray(held)
    with pytest.raises(InternalError, match="host code"):
        bool(held)
    with pytest.raises(InternalError, match="NULL:1 looked into a tensor of /device:NULL:0"):
        second.copy_out(held)
    with pytest.raises(InternalError, match="not in its memory"):
        first.copy_out(np.ones(3))  # type: ignore[arg-type]


def test_arguments_are_where_the_registrations_say() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32})
    shape = graph.add("Placeholder", "s", attrs={"dtype": dtypes.int32})
    node = graph.add("Reshape", "r", [x, shape], attrs={"T": dtypes.float32, "Tshape": dtypes.int32})
    node.device = "/device:NULL:0"
    compute = registry.get(node, "NULL").factory(KernelNode(node))
    memory = memory_of(0)
    here, sizes = memory.copy_in(np.zeros(6, np.float32)), np.array([2, 3], np.int32)
    assert compute(here, sizes).shape == (2, 3)
    with pytest.raises(
        InternalError, match=r"input 0 of Reshape must be in the memory of .*NULL:0; it is a host array"
    ):
        compute(np.zeros(6, np.float32), sizes)
    with pytest.raises(InternalError, match=r"input 1 of Reshape must be in host memory"):
        compute(here, memory.copy_in(sizes))


def test_device_types_are_registered_once() -> None:
    with pytest.raises(GraphError, match="two device types called NULL"):
        device_types.register(device_types.DeviceType("NULL", ()))
    with pytest.raises(UsageError, match=r"no device of type NUL here.*did you mean 'NULL'"):
        device_types.memory("NUL", 0)
    assert "NULL" not in device_types.listed()
