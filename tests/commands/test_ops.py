"""graphmill ops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.main import run


def test_json_lists_every_op_with_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) >= 600
    conv = rows["Conv2D"]
    assert conv["gradient"] == "function" and conv["shape_function"]
    assert conv["kernels"][0]["device"] == "CPU" and "float32" in conv["dtypes"]


def test_one_op(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "MaxPool"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("MaxPool(input: T) -> output: T")
    assert "padding: string in {SAME, VALID, EXPLICIT}" in text and "kernel    CPU numpy" in text


def test_a_typo_is_helped(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "Con2D"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops"]) == 0
    assert "ops with a kernel" in capsys.readouterr().out.splitlines()[-1]


def rows(text: str) -> dict[str, list[int]]:
    """The families of a Markdown table and their numbers."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: list(map(int, cells[1:])) for cells in lines if cells[-1].isdigit()}


def test_the_readme_has_the_table_that_is_generated(capsys: pytest.CaptureFixture[str]) -> None:
    """The README claims no op that is not there, and is at most a few ops behind."""
    assert run(["ops", "--families"]) == 0
    made = rows(capsys.readouterr().out)
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    shown = rows(readme.partition("| family |")[2].partition("\n\n")[0])
    hint = "paste the output of `graphmill ops --families` into README.md"
    assert shown.keys() == made.keys(), hint
    assert "other" not in made, "a kernel module belongs to no family; see toolkit/kernels/families.py"
    for family, numbers in shown.items():
        assert all(claimed <= real for claimed, real in zip(numbers, made[family], strict=True)), f"{family}: {hint}"
    assert shown["all"][0] >= 0.98 * made["all"][0], hint


def test_one_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "--device", "cpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {kernel["device"] for row in found for kernel in row["kernels"]} == {"CPU"}
    assert run(["ops", "Identity", "--device", "CPU"]) == 0
    assert "kernel    DEFAULT" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--device", "CPO"], "--device: there are no kernels for 'CPO' here; did you mean 'CPU'? Expected CPU"),
        (["--device", "NULL"], "--device: there are no kernels for 'NULL' here; expected CPU"),
        (["--device", "CPU", "--all"], "--device lists ops with a kernel there, --all those without one too"),
        (["--device", "CPU", "--families"], "--families has a column for each device"),
    ],
)
def test_a_device_that_cannot_be_listed(args: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", *args]) == 2
    assert capsys.readouterr().err.startswith(f"graphmill: error: {told}")
