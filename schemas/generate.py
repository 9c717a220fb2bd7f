"""Compile schemas/*.proto to the committed *_pb2.py and *_pb2.pyi modules.

    python -m schemas.generate           write the modules
    python -m schemas.generate --check   exit 1, naming them, if any would change

The compiler is the exact grpcio-tools release named below: another release
may write other code, and raises the oldest protobuf runtime that loads it.
"""

import argparse
import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path

GRPCIO_TOOLS = "1.80.1"
FOLDER = Path(__file__).resolve().parent
SUFFIXES = ("_pb2.py", "_pb2.pyi")


class GenerateError(Exception):
    """The modules cannot be made; the message says why."""


def compile_protos() -> dict[str, bytes]:
    """Return file name to content of every module, leaving the folder alone."""
    try:
        version = importlib.metadata.version("grpcio-tools")
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    if version != GRPCIO_TOOLS:
        raise GenerateError(
            f"grpcio-tools {GRPCIO_TOOLS} is needed, {version} is installed; "
            f"run: pip install grpcio-tools=={GRPCIO_TOOLS}"
        )
    root = FOLDER.parent
    protos = sorted(path.relative_to(root).as_posix() for path in FOLDER.glob("*.proto"))
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={out}", f"--pyi_out={out}"]
        done = subprocess.run(command + protos, cwd=root, capture_output=True, text=True)
        if done.returncode:
            raise GenerateError(f"protoc failed:\n{done.stderr.rstrip()}")
        return {path.name: path.read_bytes() for path in sorted((Path(out) / "schemas").iterdir())}


def differing(modules: dict[str, bytes]) -> list[str]:
    """Name the committed files that are not as generated, missing and leftover ones too."""
    present = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.name.endswith(SUFFIXES)}
    return sorted(name for name in present.keys() | modules.keys() if present.get(name) != modules.get(name))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m schemas.generate", description="Compile schemas/*.proto.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a module is out of date")
    args = parser.parse_args(argv)
    try:
        modules = compile_protos()
    except GenerateError as error:
        print(f"generate: {error}", file=sys.stderr)
        return 2
    names = differing(modules)
    if args.check:
        for name in names:
            print(f"schemas/{name} differs from what schemas/*.proto give", file=sys.stderr)
        return 1 if names else 0
    for name in names:
        if name in modules:
            (FOLDER / name).write_bytes(modules[name])
            print(f"wrote schemas/{name}")
        else:
            (FOLDER / name).unlink()
            print(f"removed schemas/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
