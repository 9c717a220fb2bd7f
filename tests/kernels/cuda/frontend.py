"""What stands for cuDNN's frontend where it is not installed: names and an error; tests have graphs of their own."""

from __future__ import annotations


class Names:
    """An enumeration of the frontend's: each member is its name."""

    def __getattr__(self, name: str) -> str:
        return name


class Frontend:
    """The module.

    Attributes:
        refuses: no engine takes any graph.
    """

    class cudnnGraphNotSupportedError(RuntimeError):  # noqa: N801 as the frontend has it
        pass

    def __init__(self) -> None:
        self.data_type, self.heur_mode, self.numerical_note = Names(), Names(), Names()
        self.refuses = False
