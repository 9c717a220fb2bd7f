"""`graphmill checkpoint` in this process, its exit code and its manners checked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commands.main import run


class Cli:
    """Runs a command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]):
        self._capsys = capsys

    def __call__(self, *args: object, code: int = 0) -> str:
        self._capsys.readouterr()
        actual = run(["checkpoint", *map(str, args)])
        out, err = self._capsys.readouterr()
        assert actual == code, out + err
        if code in (0, 1):
            assert err == ""
            return out
        assert out == "" and err.startswith("graphmill: error: ") and err.count("\n") == 1
        return err

    def json(self, *args: object, code: int = 0) -> Any:
        return json.loads(self(*args, "--json", code=code))
