"""What a model prints reaches a terminal as text that is seen, and anything else as it is."""

from __future__ import annotations

import io
import sys

import pytest

from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.kernels.cpu.common import np
from toolkit.runtime.session import Session


class Terminal(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, *, is_terminal: bool):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, "\\x1b[2Jhello\n"), (False, "\x1b[2Jhello\n")])
def test_print(is_terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    graph = Graph()
    text = from_array(np.array(b"\x1b[2Jhello", object))
    value = graph.add("Const", "text", attrs={"dtype": dtypes.string, "value": text})
    graph.add("PrintV2", "said", [value], attrs={"output_stream": "stderr", "end": "\n"})
    with Session(graph) as session:
        session.run(graph.node("said"))
    assert stream.getvalue() == shown
