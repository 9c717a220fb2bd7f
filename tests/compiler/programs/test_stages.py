"""--dump-stages: what cannot be written is the end of the run, and no reason to go on node by node."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from toolkit import client as gm
from toolkit.errors import GraphmillError
from toolkit.runtime.session import Session


def _graph() -> Any:
    with gm.Graph().as_default() as graph:
        gm.identity(gm.placeholder("float32", [2], name="x") * 2.0 + 1.0, name="y")
    return graph


def _full(path: Path, *_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.parametrize("call", ["mkdir", "write_text"])
def test_what_cannot_be_written(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "on")  # what users have: mistakes of the compiler are not theirs
    feeds = {"x:0": [1, 2]}
    with Session(_graph(), stages=str(tmp_path)) as session:
        monkeypatch.setattr(Path, call, _full)
        for ask in (session.run, session.explain):
            with pytest.raises(GraphmillError, match=r"5-program-.*: cannot be written: No space left on device"):
                ask("y:0", feeds)
        monkeypatch.undo()
        assert session.run("y:0", feeds).tolist() == [3, 5]
