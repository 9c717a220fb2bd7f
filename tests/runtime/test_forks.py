"""Servers load a model, run it once, and fork: steps of the children are as those of the parent."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tests.forks import child_says
from tests.one_product import one_product
from toolkit.runtime.session import Session

#: of a product that is worth several threads
_SIZE = 512


def test_children_run_the_session_that_their_parent_has_run() -> None:
    """By several threads, which the parent keeps for its next step, and a child has not."""
    graph, value, bound = one_product(_SIZE)
    with Session(graph, threads=2) as session:
        expected = session.run("y:0", {"x:0": value})

        def runs() -> bool:
            return bool(np.all(np.abs(session.run("y:0", {"x:0": value}) - expected) <= bound))

        def runs_in_a_thread() -> bool:
            found: list[bool] = []
            thread = threading.Thread(target=lambda: found.append(runs()))
            thread.start()
            thread.join()
            return found == [True] and runs()

        for _ in range(2):
            assert child_says(runs)
            assert child_says(runs_in_a_thread)
            assert child_says(lambda: runs() and child_says(runs) and runs())
            assert runs()


def test_children_compile_and_close_sessions() -> None:
    graph, value, bound = one_product(_SIZE)

    def fresh(threads: int) -> bool:
        with Session(graph, threads=threads) as session:
            found: Any = session.run("y:0", {"x:0": value})
            return bool(np.all(np.abs(found - expected) <= bound))

    with Session(graph, threads=2) as session:
        expected = session.run("y:0", {"x:0": value})
        for threads in (1, 2):
            assert child_says(lambda threads=threads: fresh(threads))

        def close() -> bool:
            session.close()
            return fresh(2)

        assert child_says(close)
        assert bool(np.all(np.abs(session.run("y:0", {"x:0": value}) - expected) <= bound))
