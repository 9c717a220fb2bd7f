"""Recurrent programs that numbers stand for, on the fake GPU beside the CPU, and a few of them in TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.compiler.recurrent_programs import CELLS, LOOPS, Program
from toolkit import client as gm
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
#: a step launch by launch, recorded, replayed, and with other numbers and lengths
STEPS = (0, 0, 0, 1, 2)


class Work:
    """The steps of a program.

    Attributes:
        graph: its nodes.
    """

    def __init__(self, program: Program):
        with gm.Graph().as_default() as graph:
            self._placeholders, self._wanted, self._fed = program.build()
            self._start: Any = gm.global_variables_initializer()
        self.graph = graph

    def __call__(self, session: Session) -> list[Any]:
        session.run(self._start)
        found: list[Any] = []
        for step in STEPS:
            found += session.run(self._wanted, dict(zip(self._placeholders, self._fed(step), strict=True)))
        return found

    def by_name(self, session: Any) -> list[Any]:
        """The same in a session of TensorFlow."""
        names = [each.name for each in self._placeholders]
        session.run(self._start.name)
        found: list[Any] = []
        for step in STEPS:
            fed = dict(zip(names, self._fed(step), strict=True))
            found += session.run([each.name for each in self._wanted], fed)
        return found


def _here(work: Work) -> list[Any]:
    with Session(work.graph, devices={"CPU": 1}) as session:
        return work(session)


def _there(work: Work, seed: int, precision: str = "f32") -> list[Any]:
    with (
        choose.using(FakeDriver(seed=seed)),
        Session(work.graph, devices={"GPU": 1}, precision=precision) as session,
    ):
        found = work(session)
        assert not [note for note in session.notes() if "launch by launch" in note or "host decides" in note]
    return found


@pytest.mark.parametrize("seed", [0, 4, 6, 8, 13, 22, 24, 205])
def test_a_gpu_gives_what_the_cpu_gives(seed: int) -> None:
    work = Work(Program.of(seed))
    perturbation.assert_agree([_there(work, seed), _here(work)], lambda: perturbation.of_work(work.graph, work))


@pytest.mark.parametrize(
    ("seed", "precision"), [(3, "bf16"), (21, "bf16"), (10, "fp16"), (40, "fp16"), (18, "tf32")]
)  # fmt: skip
def test_so_it_does_in_other_precisions(seed: int, precision: str) -> None:
    work = Work(Program.of(seed))
    perturbation.assert_agree(
        [_there(work, seed, precision), _here(work)],
        lambda: perturbation.of_work(work.graph, work, precision=precision),
    )


@pytest.mark.parametrize("seed", [2, 7, 15, 21])
def test_tensorflow_gives_it_too(tf: ModuleType, seed: int) -> None:
    work = Work(Program.of(seed))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(work.graph.as_graph_def().SerializeToString()), name="")
        with tf.compat.v1.Session(graph=graph) as session:
            wanted = work.by_name(session)
    perturbation.assert_agree([_there(work, seed), wanted], lambda: perturbation.of_work(work.graph, work))


def test_numbers_stand_for_all_kinds_of_programs() -> None:
    """Each cell, loop and kind of lengths, with and without gradients, is drawn sooner or later."""
    drawn = [Program.of(seed) for seed in range(300)]
    assert {name for program in drawn for name in program.cells} == set(CELLS)
    assert {program.loop for program in drawn} == set(LOOPS)
    assert {(program.lengths, program.learns) for program in drawn} == {
        (lengths, learns) for lengths in ("none", "known", "fed") for learns in (False, True)
    }
    assert np.all([np.greater(program.sizes, 0) for program in drawn])
