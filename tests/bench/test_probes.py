"""The suite probes: its rows are of watched steps, which were run as many times as plain ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.bench import probes
from tests.bench.measure import Row
from tests.bench.settings import Settings
from tests.bench.workloads import WORKLOADS


def test_each_way_takes_its_turn_and_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[str] = Counter()
    ways = ("plain", "--trace", "--check-numerics")
    steps: dict[str, Any] = {way: lambda way=way: counted.update([way]) for way in ways}
    monkeypatch.setattr(probes, "_ours", lambda *_: steps)
    rows = list(probes.run(Settings(rounds=2, peers=(), only=("LSTM",))))
    assert [row.workload.rpartition(", ")[2] for row in rows if isinstance(row, Row)] == list(ways[1:])
    assert set(counted.values()) == {probes.WARM + 2 * probes.TURNS}
    assert [row.target for row in rows if isinstance(row, Row)] == [probes.TARGET, None]


@pytest.mark.tensorflow
def test_watched_steps_give_what_plain_ones_do() -> None:
    steps = probes._ours(WORKLOADS["LSTM(128) T=50 batch 32, functional"], threads=1)
    plain = steps["plain"]()
    for name, step in steps.items():
        for ours, others in zip(step(), plain, strict=True):
            assert np.array_equal(ours, others), name
