"""What a validation is asked to look at."""

from __future__ import annotations

from dataclasses import dataclass, field

#: what a budget can limit; the keys of `Options.budgets`
BUDGETS = ("nodes", "params", "flops", "bytes")


@dataclass(frozen=True)
class Options:
    """Options of the checks; which rules apply and how severe they are is `config.Config`.

    Attributes:
        checkpoint: the checkpoint that every graph is held against; "" for the one that belongs to a SavedModel.
        runs_on: device type whose kernels the graph needs, "CPU" or "GPU"; "" not to ask.
        budgets: limits by the names in BUDGETS: nodes (functions included), parameters, floating-point operations
            of one run with batch size 1, bytes of the file or of all files of a SavedModel.
        compatible_with: an earlier version of the model whose signatures must go on working; "" for none.
    """

    checkpoint: str = ""
    runs_on: str = ""
    budgets: dict[str, int] = field(default_factory=dict[str, int])
    compatible_with: str = ""
