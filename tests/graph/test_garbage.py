"""The collector of cyclic garbage is off while programs are made, and only then."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from toolkit.compiler.pipeline import compile as compiling
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.garbage import no_collection, postponed, resume
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    was = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was else gc.disable)()


def _graph() -> Graph:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32})
    graph.add("Exp", "y", [x], attrs={"T": dtypes.float32})
    return graph


def test_it_is_off_while_a_program_is_compiled_and_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    compile_block = compiling.compile_block

    def watched(*args: object, **kwargs: object) -> object:
        seen.append(gc.isenabled())
        return compile_block(*args, **kwargs)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(compiling, "compile_block", watched)
    with Session(_graph()) as session:
        session.run("y:0", {"x:0": np.ones(3, np.float32)})
    assert seen == [False]
    assert gc.isenabled()


def test_it_is_on_again_after_a_refusal() -> None:
    with Session(_graph()) as session, pytest.raises(GraphmillError, match="must feed"):
        session.run("y:0")
    assert gc.isenabled()


def test_who_switched_it_off_finds_it_off() -> None:
    gc.disable()
    with no_collection():
        pass
    assert not gc.isenabled()


def test_the_last_of_several_threads_switches_it_on() -> None:
    inside, leave = threading.Event(), threading.Event()

    @no_collection()
    def other() -> None:
        inside.set()
        leave.wait()

    thread = threading.Thread(target=other)
    with no_collection():
        thread.start()
        inside.wait()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_what_is_postponed_begins_when_it_is_resumed() -> None:
    with postponed():
        with no_collection():
            pass
        assert not gc.isenabled()
        resume()
        assert gc.isenabled()
        with no_collection():
            assert not gc.isenabled()
        assert gc.isenabled()
    assert gc.isenabled()
    gc.unfreeze()


def test_what_is_never_resumed_is_on_again_at_the_end() -> None:
    with postponed():
        pass
    assert gc.isenabled()


def test_nothing_is_resumed_where_it_was_off() -> None:
    gc.disable()
    with postponed():
        resume()
        assert not gc.isenabled()
    assert not gc.isenabled()
