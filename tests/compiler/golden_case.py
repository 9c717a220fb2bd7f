"""Golden cases: what one pass makes of one program, in the text form.

A case is a file in `golden/PASS/`: what it shows, what the pass is given besides, the program, and what becomes of it:

    // A relu behind a product is computed while the sums are in registers.
    // with: where = loop, states = 1
    // variable w: float32[8,4] seed 1
    program(%0: float32[8,64]) {
      ...
    }
    ---- becomes
    program(%0: float32[8,64]) {
      ...
    }

Or it stays as it is (`---- stays`), the pass is not for it (`---- is passed over`), or it cannot do it
(`---- is refused: NODE: REASON`). `pytest --update-golden` writes the second part anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import toolkit.compiler.backends.cuda.launchers  # noqa: F401  # with the operations that cases begin with
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.structure import broken
from toolkit.compiler.ir.text.arrays import SideTable, read_array
from toolkit.compiler.ir.text.parser import parse_block
from toolkit.compiler.ir.text.printer import print_block
from toolkit.compiler.ir.text.tokens import Words
from toolkit.compiler.pipeline.cpu import PASSES
from toolkit.compiler.pipeline.cuda import CUDA_PASSES
from toolkit.compiler.pipeline.passes import Compilation, Pass, Where
from toolkit.compiler.settings import Settings
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.resources.variables import Variable
from toolkit.target import rows

#: those of processors and those of GPUs
ALL_PASSES = (*PASSES, *CUDA_PASSES)
FOLDER = Path(__file__).parent / "golden"
BECOMES, STAYS, PASSED_OVER, REFUSED = "becomes", "stays", "is passed over", "is refused"
_MARK = re.compile(r"^---- ?(.*)\n?", re.MULTILINE)
_WITH = re.compile(r"^// with: *(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"^// variable (\S+): *(.*)$", re.MULTILINE)
#: what a case may be given
_OPTIONS = frozenset({"excluded", "precision", "processor", "states", "threads", "where"})
_RUNNING: Any = None  # the variables of these programs are in their handles, so that no step is asked


@dataclass(frozen=True)
class Case:
    """A program for a pass.

    Attributes:
        file: where it stands.
        before: the first part, with its comments.
        after: the second part, from its mark on.
        options: where it is (program or loop), how many states that loop has, the precision, threads, the processor,
            and the name of a node that must keep its kernel.
    """

    file: Path
    before: str
    after: str
    options: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        return f"{self.file.parent.name}/{self.file.stem}"

    @property
    def outcome(self) -> str:
        """What becomes of the program, in a word or two."""
        mark = _MARK.match(self.after)
        return mark.group(1).partition(":")[0] if mark is not None else ""

    @property
    def applied(self) -> Pass:
        """The pass that the folder is named after."""
        return next(each for each in ALL_PASSES if each.name == self.file.parent.name)

    @property
    def _processor(self) -> str:
        return self.options.get("processor", "avx2")

    def run(self) -> str:
        """What becomes of the program, as the second part of the file has it.

        The program is well-formed before and after, or an assertion fails.
        """
        beside = SideTable()
        for name, array in _VARIABLE.findall(self.before):
            beside.objects[f"@ResourceHandle({name!r})"] = _handle(name, array, beside)
        block = parse_block(self.before, beside, source=self.name)
        assert not list(broken(block)), self.name
        text = print_block(block, beside)
        to = self._compilation(block)
        if not self.applied.applies(block, to):
            return f"---- {PASSED_OVER}\n"
        try:
            self.applied.apply(block, to)
        except NotSupportedError as reason:
            return f"---- {REFUSED}: {reason}\n"
        assert not list(broken(block)), self.name
        made = print_block(block, beside)
        return f"---- {STAYS}\n" if made == text else f"---- {BECOMES}\n{made}"

    def _compilation(self, block: Block) -> Compilation:
        options = self.options
        threads, target = int(options.get("threads", "1")), _PROCESSORS[self._processor]
        settings = Settings(precision=options.get("precision", "f32"), threads=threads, target=target)
        names = {step.node.name for operation in block.walk() for step in operation.steps}
        if "excluded" in options:
            assert options["excluded"] in names, (
                f"{self.name}: no node of the program is called '{options['excluded']}'"
            )
        excluded = {options["excluded"]: "it is refused"} if "excluded" in options else {}
        where = Where[options.get("where", "program").upper()]
        return Compilation(block, settings, excluded, _RUNNING, where, int(options.get("states", "0")))


def read_case(file: Path) -> Case:
    """The case in a file."""
    text = file.read_text(encoding="utf-8")
    mark = _MARK.search(text)
    before, after = (text, "") if mark is None else (text[: mark.start()], text[mark.start() :])
    given = _WITH.search(before)
    pairs = [pair.split("=") for pair in given.group(1).split(",")] if given is not None else []
    options = {name.strip(): value.strip() for name, value in pairs}
    unknown = next((name for name in options if name not in _OPTIONS), None)
    assert unknown is None, f"{file}: '{unknown}' is no option of a case; expected {', '.join(sorted(_OPTIONS))}"
    return Case(file, before, after, options)


def cases() -> list[Case]:
    """All cases, by pass and name."""
    return [read_case(file) for file in sorted(FOLDER.glob("*/*.txt"))]


#: the processors that passes may be shown; what is chosen does not depend on the one that the tests run on
_PROCESSORS = {
    "avx2": rows.AVX2,
    "baseline": rows.BASELINE,
    "avx512": rows.AVX512,
    "avx512_bf16": rows.AVX512._replace(vectors=rows.AVX512.vectors._replace(bfloat16=True)),
    "avx512_vnni": rows.AVX512._replace(vectors=rows.AVX512.vectors._replace(exact_int8=True)),
}


def _handle(name: str, array: str, beside: SideTable) -> ResourceHandle:
    """The handle of a variable that holds an array."""
    held = read_array(Words(array, name), beside)
    dtype, shape = dtypes.from_numpy(held.dtype), Shape(held.shape)
    variable = Variable(name, dtype, shape)
    variable.value = held
    return ResourceHandle("", name, "Variable", ((dtype, shape),), variable)
