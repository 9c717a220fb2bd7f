"""What functions take and return, held against what their callers say."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role
from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType

#: of the arguments and of the results of a function, None where the caller does not say
FunctionTypes = tuple[Sequence[DType] | None, Sequence[DType] | None]


def check_types(program: Program, name: str, types: FunctionTypes) -> None:
    """See that a function takes and returns what its caller says that it does.

    Raises:
        InvalidArgumentError: it does not.
    """
    for what, role, count, wanted in (
        ("arg", Role.ARG, program.num_arguments, types[0]), ("ret", Role.RETVAL, program.num_results, types[1])
    ):  # fmt: skip
        if wanted is None:
            continue
        if count != len(wanted):
            takes = "takes" if what == "arg" else "returns"
            raise InvalidArgumentError(f"function '{name}' {takes} {count} tensor(s), not {len(wanted)}")
        for step in program.steps:
            if step.role is role:
                own: DType = step.node.attr("T")
                given = wanted[step.index]
                if own.base != given.base:
                    raise InvalidArgumentError(
                        f"function '{name}' expects {what}[{step.index}] to be {own} but {given} is provided"
                    )
