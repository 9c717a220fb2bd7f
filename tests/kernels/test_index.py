"""The index of kernel modules is what they register, and each of them can be imported first."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.kernels import index

PACKAGE = "toolkit.kernels.cpu"
#: where the kernels of a device type are
PACKAGES = {"CPU": PACKAGE, "GPU": "toolkit.kernels.gpu"}
ROOT = Path(__file__).parents[2]
#: says by standard output which module registers which ops: the nearest one that is just being imported
_REGISTRATIONS = """
import json, sys
from toolkit.kernels import registry
device, found = sys.argv[1], {}
add = registry.add
def noted(entry):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if entry.device_type == device:
        found.setdefault(frame.f_globals["__name__"], set()).add(entry.op)
    add(entry)
registry.add = noted
registry.load(device)
print(json.dumps({module: sorted(ops) for module, ops in found.items()}))
"""
#: imports each of the given modules in a child of its own, with nothing imported before but the registry
_ALONE = """
import os, sys
from toolkit.kernels import registry
failed = []
for module in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            __import__(module)
        except BaseException as error:
            print(module, type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(module)
sys.exit(bool(failed))
"""


def _said(program: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=list(PACKAGES))
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def registered(device: str) -> dict[str, list[str]]:
    return json.loads(_said(_REGISTRATIONS, device))


def _lines(registered: dict[str, list[str]], device: str) -> Iterator[str]:
    package = PACKAGES[device]
    for module, ops in sorted(registered.items()):
        assert module.startswith(f"{package}."), f"{module} registers kernels for {device} from outside of {package}"
        yield f"{module.removeprefix(package + '.')} {' '.join(ops)}\n"


def test_the_table_is_what_modules_register(
    registered: dict[str, list[str]], device: str, request: pytest.FixtureRequest
) -> None:
    text, table = "".join(_lines(registered, device)), ROOT / PACKAGES[device].replace(".", "/") / index.TABLE
    if request.config.getoption("--update-golden"):
        table.write_text(text, encoding="utf-8")
    assert table.read_text(encoding="utf-8") == text, "kernels were moved or added: run pytest --update-golden on this"


def test_every_module_can_be_imported_first(registered: dict[str, list[str]]) -> None:
    _said(_ALONE, *registered)


def test_an_op_brings_no_other_modules() -> None:
    program = (
        "import sys\n"
        "from toolkit.kernels import registry\n"
        "assert len(registry.candidates('MatMul', 'CPU')) > 0\n"
        "print('\\n'.join(name for name in sys.modules if name.startswith('toolkit.kernels.cpu.')))\n"
    )
    loaded = _said(program).split()
    assert f"{PACKAGE}.sparse" not in loaded and f"{PACKAGE}.dataset_source" not in loaded
    assert set(index.modules("CPU")["MatMul"]) <= set(loaded)


def test_an_op_that_is_not_in_the_table_has_all_modules_imported() -> None:
    program = (
        "import sys\n"
        "from toolkit.kernels import registry\n"
        "print(registry.lacking('MatMull'))\n"
        "print('toolkit.kernels.cpu.sparse.basic' in sys.modules)\n"
    )
    said, imported = _said(program).splitlines()
    assert "did you mean 'MatMul'" in said and imported == "True"
