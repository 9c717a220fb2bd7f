"""The commands that the samples' README shows run as they stand there, and leave only what they name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commands() -> list[str]:
    text = (ROOT / "samples" / "README.md").read_text()
    block = text.partition("## Try\n")[2].partition("\n## ")[0]
    return [line.strip() for line in block.splitlines() if line.startswith("    ")]


def test_the_readme_commands_run(tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    found = commands()
    assert len(found) >= 10
    program = f"{sys.executable} -m commands.main"
    for command in found:
        line = command.replace("graphmill ", program + " ")
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    named = {"samples", "digits.meta", "ckpt", "eval.meta", "slim", "p.npz", "trace.json", "weights.npz", "eval.svg"}
    named |= {"denoise.meta", "lenet.meta", "classifier.meta", "placed.meta"}
    assert {path.name for path in tmp_path.iterdir()} == named
