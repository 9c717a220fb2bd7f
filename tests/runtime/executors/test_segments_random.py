"""Random programs on random devices: what is compiled between transfers gives what node by node gives, bit for bit."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.passes import stages
from tests.passes.test_semantics import program
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session


def steps_of(stage: stages.Stage, **settings: Any) -> tuple[list[Any], list[str]]:
    """What an initial and two further steps compute, by the kernels that define the ops, and how the last is run."""
    devices = [make_device(each) for each in stage.devices]
    with Session(stage.graph.copy(), devices=devices, precision="exact", **settings) as session:
        session.run([*stage.initializers, *stage.always], {**stage.feeds, **stage.values})
        found: list[Any] = []
        for _ in range(2):
            found += session.run([stage.fetches, [*stage.targets, *stage.always]], stage.feeds)[0]
        lines = session.explain([stage.fetches, [*stage.targets, *stage.always]], stage.feeds)
    return found, [*lines, *session.notes()]


def check(seed: int) -> list[str]:
    """Place a program anywhere, and hold its segments against its nodes."""
    rng = random.Random(seed)
    before = stages.start(program(seed))
    placed = stages._placed(before, rng)  # pyright: ignore[reportPrivateUsage]
    try:
        found, lines = steps_of(placed)
        stages.assert_same(before.fetches, steps_of(placed, force_tokens=True)[0], found)
        stages.assert_same(before.fetches, stages.run(before), found)
    except Exception as error:
        error.add_note(f"program {seed}: {'; '.join(placed.log)}")
        raise
    return lines


@pytest.mark.parametrize("seed", range(7000, 7024))
def test_segments_compute_what_nodes_compute(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8000, 9000))
def test_many_segments_compute_what_nodes_compute(seed: int) -> None:
    check(seed)
