"""Plans for other shapes have equal packed weights once, and none is thrown away for memory that it does not take."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.compiler import plan
from toolkit.compiler.backends.cpu.emission.interning import LEAST, interned, packing
from toolkit.compiler.ir.lasting import is_lasting, note_lasting
from toolkit.compiler.plan import Plan, SharedPlan
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.executors import planned
from toolkit.runtime.session import Session


def test_an_equal_array_is_the_one_that_is_there() -> None:
    first = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
    assert interned(first) is first
    assert interned(first.copy()) is first
    assert interned(first.reshape(128, 64)) is not first  # another shape


def test_what_differs_in_one_byte_anywhere_is_another() -> None:
    random = np.random.default_rng(1)
    first = random.integers(0, 256, 2 * LEAST + 4, np.uint8)  # no multiple of 8
    assert interned(first) is first
    for place in (0, 1, LEAST + 3, len(first) - 1):
        other = first.copy()
        other[place] ^= 1
        assert interned(other) is other


def test_numbers_that_are_not_numbers_are_compared_as_bytes() -> None:
    first = np.full(LEAST, np.nan, np.float32)
    assert interned(first) is first
    assert interned(first.copy()) is first


def test_what_nobody_holds_any_more_is_gone() -> None:
    first = np.arange(LEAST, dtype=np.int64) + 7
    known = weakref.ref(interned(first))
    assert known() is first
    del first
    gc.collect()
    assert known() is None


def test_what_outlives_a_plan_is_packed_once_while_somebody_uses_it() -> None:
    made: list[int] = []

    def pack() -> Any:
        made.append(0)
        return np.ascontiguousarray(weights.T)

    weights = np.random.default_rng(2).normal(size=(48, 96)).astype(np.float32)
    note_lasting(weights)
    first = packing(weights, "turned", pack)
    assert packing(weights.reshape(48, 96), "turned", pack) is first  # a view of the same
    assert len(made) == 1
    assert packing(weights[:, :48], "turned", pack) is not first
    assert packing(weights, "otherwise", pack) is not first
    assert packing(weights[::-1], "turned", pack) is not first  # backwards, from another place
    assert packing(weights[:, ::-1], "turned", pack) is not packing(weights[::-1], "turned", pack)
    assert packing(weights, "turned", pack, ()) is first
    before, reference = len(made), weakref.ref(first)
    del first
    gc.collect()
    assert reference() is None
    packing(weights, "turned", pack)
    assert len(made) == before + 1


def test_while_it_is_used_packed_a_constant_is_somebody_elses_too() -> None:
    """So a variable that has it is copied before it changes."""
    weights = np.ones((64, 64), np.float32)
    note_lasting(weights)
    before = sys.getrefcount(weights)
    used = packing(weights, "copied", weights.copy)
    assert sys.getrefcount(weights) > before
    del used
    gc.collect()
    assert sys.getrefcount(weights) == before


def test_what_is_made_for_a_plan_is_not_kept_for_the_next() -> None:
    scaled = np.ones((64, 64), np.float32) * 2
    assert not is_lasting(scaled)
    known = weakref.ref(scaled)
    used = packing(scaled, "copied", scaled.copy)
    assert packing(scaled, "copied", scaled.copy) is not used
    del scaled
    gc.collect()
    assert known() is None


@pytest.mark.skipif(library() is None or compiler() is None, reason="needs LLVM and oneDNN")
def test_plans_for_other_batches_share_weights_and_all_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Plan | SharedPlan] = []

    def build(*given: Any, **options: Any) -> Plan | SharedPlan:
        made.append(plan.build(*given, **options))
        return made[-1]

    monkeypatch.setattr(planned, "build", build)
    weights = [np.random.default_rng(seed).normal(size=(512, 512)).astype(np.float32) for seed in range(4)]
    # room for the weights and half as much again, where plans with weights of their own could not stay beside others
    monkeypatch.setattr(planned, "_MAX_BYTES", sum(each.nbytes for each in weights) * 3 // 2)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 512], name="x")
        for each in weights:
            x = gm.relu(gm.matmul(x, each))
        gm.identity(x, name="out")
    with Session(graph, threads=1) as session:
        for _ in range(2):
            for rows in (16, 32, 48, 64):
                session.run("out:0", {"x:0": np.ones((rows, 512), np.float32)})
    assert len(made) == 4
    together: dict[int, int] = {}
    for each in made:
        together |= each.packed
    assert sum(together.values()) < sum(made[0].packed.values()) + min(each.nbytes for each in weights)
