"""The benchmark of making graphs: both sides make the same one."""

from __future__ import annotations

import pytest

from tests.bench import client


@pytest.mark.tensorflow
def test_both_sides_make_as_many_nodes(tf: object) -> None:
    _, _, ours = client.measured("ours", 500)
    _, _, theirs = client.measured("tensorflow", 500)
    assert ours == theirs >= 500
