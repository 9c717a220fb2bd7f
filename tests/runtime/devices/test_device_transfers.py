"""Tensors that leave a device: the sender goes on while they are copied; between devices of a type they go alone."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.patience import HUNG
from toolkit import client as gm
from toolkit.errors import InternalError, ResourceExhaustedError
from toolkit.kernels import registry
from toolkit.kernels.null.memory import NullMemory, memory_of
from toolkit.runtime.session import Session

ops = gm.ops
HERE, THERE = "/device:CPU:0", "/device:NULL:0"
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def _sent_and_computed() -> tuple[Any, Any, Any]:
    """A graph that sends what its device computes first: what is fed, what is sent, what is computed last."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(THERE):
            y = last = ops.exp(x)
            for _ in range(5):
                last = ops.tanh(last)
            last = ops.neg(last)
        with graph.device(HERE):
            z = y + 1.0
    return x, z, last


def _on_the_cpu(fetch: Any, x: Any) -> Any:
    """The values by the definitions, which NULL devices compute by too."""
    with Session(x.graph, precision="exact") as session:  # which has no other device: soft placement
        return session.run(fetch, {x: X})


def test_the_sender_goes_on_while_its_tensor_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = threading.Event()
    neg, *_ = registry.candidates("Neg", "NULL")  # behind it the host's, for integers that stay there

    def told(op: Any) -> Callable[..., Any]:
        compute = neg.factory(op)

        def run(value: Any) -> Any:
            computed.set()
            return compute(value)

        return run

    def begin(memory: NullMemory, array: Any) -> Callable[[], Any]:
        def wait() -> Any:
            assert computed.wait(HUNG)
            return memory.copy_out(array)

        return wait

    patched = [replace(neg, factory=told)]
    monkeypatch.setitem(registry._kernels, ("Neg", "NULL"), patched)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(NullMemory, "begin_copy_out", begin)
    x, z, last = _sent_and_computed()
    with Session(x.graph, devices={"NULL": 1}, precision="exact") as session:
        got = session.run([z, last], {x: X})
    np.testing.assert_array_equal(got[0], _on_the_cpu(z, x))


def test_a_copy_that_fails_ends_the_step_and_names_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    x, z, _ = _sent_and_computed()
    with Session(x.graph, devices={"NULL": 1}, precision="exact") as session:
        with monkeypatch.context() as patched:

            def begin(memory: NullMemory, array: Any) -> Callable[[], Any]:
                def wait() -> Any:
                    raise InternalError("the copy was lost")

                return wait

            patched.setattr(NullMemory, "begin_copy_out", begin)
            with pytest.raises(InternalError, match=r"node '[^']*Exp[^']*'.*the copy was lost"):
                session.run(z, {x: X})
        np.testing.assert_array_equal(session.run(z, {x: X}), _on_the_cpu(z, x))


def test_devices_of_one_type_copy_without_host_memory() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(THERE):
            y = ops.exp(x)
        with graph.device("/device:NULL:1"):
            z = ops.tanh(y)
    before = replace(memory_of(1).statistics()), replace(memory_of(0).statistics())
    with Session(graph, devices={"NULL": 2}, precision="exact") as session:
        np.testing.assert_array_equal(session.run(z, {x: X}), _on_the_cpu(z, x))
        memory_of(1).set_limit(memory_of(1).statistics().in_use)
        try:
            with pytest.raises(ResourceExhaustedError, match="NULL:1 has no room"):
                session.run(z, {x: X})
        finally:
            memory_of(1).set_limit(None)
    assert memory_of(1).statistics().copies_across > before[0].copies_across
    assert memory_of(1).statistics().copies_in > before[0].copies_in  # Exp and Tanh there are the CPU's, through copies
