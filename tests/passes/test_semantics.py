"""Random programs through random stages, one after the other: what they compute stays the same, bit for bit."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.passes import stages
from tests.passes.graphs import plain_config, to_tensorflow
from tests.passes.programs import Program, pieces_of
from tests.perturbation import assert_agree, of_work
from toolkit.runtime.session import Session

#: chains of stages for each program, where there is time
_CHAINS = 2
_PROGRAMS = range(200)
#: of these each run takes as many as make it all but certain that each of the seven stages comes: a chain has one to
#: five, the rarest is drawn once in thirteen times, so a chain has it with 0.21, and 60 chains lack one with below 1e-5
_FEW = sorted(random.Random("programs through stages").sample(_PROGRAMS, 60))


def program(seed: int, *, subnormal: bool = True) -> Program:
    """A program with its feeds, which the number decides."""
    rng = random.Random(seed)
    count, fed = rng.randint(4, 24), rng.choice([None, None, rng.randrange(40)])
    return Program(
        pieces_of(seed, count), fed=fed, count=rng.randint(0, 3), flag=rng.random() < 0.5, odd=rng.random() < 0.3,
        subnormal=subnormal,
    )  # fmt: skip


def check(seed: int, chains: int = _CHAINS) -> None:
    """Send a program through chains of stages, and compare what comes out with the program itself."""
    before = stages.start(program(seed))
    wanted = stages.run(before)
    for chain in range(chains):
        rng = random.Random(seed * 10 + chain)
        after = before
        try:
            after = stages.through(before, rng, rng.randint(1, 5))
            stages.assert_same(before.fetches, wanted, stages.run(after))
        except Exception as error:
            error.add_note(f"program {seed}, chain {chain}: {'; '.join(after.log)}")
            raise


@pytest.mark.parametrize("seed", _FEW)
def test_stages_keep_what_programs_compute(seed: int) -> None:
    """A sample: each program goes the same ways through the same seven stages, and takes half a second. The others are
    among the long tests."""
    check(seed, chains=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", [*sorted({*_PROGRAMS} - {*_FEW}), *range(1000, 3000)])
def test_many_stages_keep_what_programs_compute(seed: int) -> None:
    check(seed)


def _here(stage: stages.Stage) -> stages.Stage:
    """The program on devices that TensorFlow has in one process: those of other tasks go to its own."""
    from dataclasses import replace

    graph = stage.graph.copy()
    names = {str(device): f"/device:CPU:{n}" for n, device in enumerate(stage.devices)}
    for node in graph:
        node.device = names.get(node.device, node.device)
    return replace(stage, graph=graph)


def _in_tensorflow(tf: Any, stage: stages.Stage) -> list[Any]:
    found: list[Any] = []
    with tf.Graph().as_default() as loaded:
        tf.import_graph_def(to_tensorflow(tf, _here(stage).graph), name="")
        config = plain_config(tf, device_count={"CPU": 4}, allow_soft_placement=True)
        with tf.compat.v1.Session(graph=loaded, config=config) as session:
            session.run([*stage.initializers, *stage.always], {**stage.feeds, **stage.values})
            for _ in range(2):
                found += session.run([stage.fetches, [*stage.targets, *stage.always]], stage.feeds)[0]
    return found


def _work(stage: stages.Stage, session: Session) -> list[Any]:
    session.run([*stage.initializers, *stage.always], {**stage.feeds, **stage.values})
    return [value for _ in range(2) for value in session.run([stage.fetches, stage.targets], stage.feeds)[0]]


def check_in_tensorflow(tf: Any, seed: int) -> None:
    """Two chains of stages: TensorFlow computes what it computes of the program itself, which is what we do."""
    before = stages.start(program(seed, subnormal=False))
    wanted = _in_tensorflow(tf, before)
    for chain in range(2):
        rng = random.Random(seed * 10 + chain)
        after = before
        try:
            after = stages.through(before, rng, rng.randint(1, 4))
            # constants may be folded by other kernels than TensorFlow's
            results = [_in_tensorflow(tf, after), stages.run(before), wanted]
            assert_agree(results, lambda: of_work(before.graph.copy(), lambda session: _work(before, session)))
        except Exception as error:
            error.add_note(f"program {seed}, chain {chain}: {'; '.join(after.log)}")
            raise


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(5000, 5008))
def test_tensorflow_computes_the_same_behind_stages(tf: Any, seed: int) -> None:
    check_in_tensorflow(tf, seed)


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(5100, 5300))
def test_tensorflow_computes_the_same_behind_many_stages(tf: Any, seed: int) -> None:
    check_in_tensorflow(tf, seed)
