"""The committed modules are what the compiler makes of the .proto files."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from schemas import generate


def test_committed_modules_are_up_to_date() -> None:
    assert generate.differing(generate.compile_protos()) == []


def test_every_proto_has_its_two_modules() -> None:
    stems = {path.stem for path in generate.FOLDER.glob("*.proto")}
    assert stems
    for suffix in generate.SUFFIXES:
        assert {path.name.removesuffix(suffix) for path in generate.FOLDER.glob(f"*{suffix}")} == stems


def test_check_names_what_differs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    modules = {
        path.name: path.read_bytes() for path in generate.FOLDER.iterdir() if path.name.endswith(generate.SUFFIXES)
    }
    monkeypatch.setattr(generate, "compile_protos", lambda: modules)
    assert generate.main(["--check"]) == 0
    modules["graph_pb2.py"] += b"# changed\n"
    del modules["types_pb2.pyi"]
    assert generate.main(["--check"]) == 1
    error = capsys.readouterr().err
    assert "schemas/graph_pb2.py" in error
    assert "schemas/types_pb2.pyi" in error
    assert "node_def" not in error


def test_generate_writes_changed_and_removes_leftover_modules(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(generate, "FOLDER", tmp_path)
    monkeypatch.setattr(generate, "compile_protos", lambda: {"a_pb2.py": b"new", "b_pb2.py": b"same"})
    (tmp_path / "b_pb2.py").write_bytes(b"same")
    (tmp_path / "old_pb2.py").write_bytes(b"old")
    (tmp_path / "other.py").write_bytes(b"kept")
    assert generate.main([]) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a_pb2.py": b"new",
        "b_pb2.py": b"same",
        "other.py": b"kept",
    }


def test_a_wrong_compiler_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "GRPCIO_TOOLS", "0.0.1")
    assert generate.main(["--check"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("generate: grpcio-tools 0.0.1 is needed")
    assert error.count("\n") == 1


def test_modules_load_without_heavy_imports() -> None:
    code = (
        "import importlib, sys, warnings; warnings.simplefilter('error')\n"
        f"for stem in {sorted(path.stem for path in generate.FOLDER.glob('*.proto'))!r}:\n"
        "    importlib.import_module(f'schemas.{stem}_pb2')\n"
        "print([name for name in ('numpy', 'grpc', 'tensorflow', 'typer') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=generate.FOLDER.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_declared_requirements_match_the_generated_code() -> None:
    project = tomllib.loads((generate.FOLDER.parent / "pyproject.toml").read_text())["project"]
    assert f"grpcio-tools=={generate.GRPCIO_TOOLS}" in project["optional-dependencies"]["test"]
    written = {
        match[1]
        for path in generate.FOLDER.glob("*_pb2.py")
        if (match := re.search(r"^# Protobuf Python Version: (\S+)$", path.read_text(), re.MULTILINE))
    }
    (version,) = written
    (requirement,) = [text for text in project["dependencies"] if text.startswith("protobuf")]
    lowest = re.match(r"protobuf>=([\d.]+)", requirement)
    assert lowest, requirement
    assert tuple(map(int, lowest[1].split("."))) >= tuple(map(int, version.split(".")))
