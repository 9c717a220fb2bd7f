"""The text form of programs after each pass, in numbered files of one folder a program."""

from __future__ import annotations

import re
from pathlib import Path

from toolkit.compiler.ir.block import Block
from toolkit.errors import GraphmillError


class StagesError(GraphmillError):
    """A file cannot be written: no mistake of the compiler, after which a program would run node by node instead."""

    def __init__(self, error: OSError, path: Path):
        super().__init__(f"cannot be written: {error.strerror or error}", file=str(path))


class StageWriter:
    """Writes what passes make of one block: FOLDER/5-program-001/00-import.txt, 01-delay.txt and so on.

    Args:
        folder: of all stages; it is made where it is missing.
        what: "program" or "loop".

    Raises:
        StagesError: the folder cannot be made.
    """

    def __init__(self, folder: str, what: str):
        number = 1
        while True:
            self._folder = Path(folder) / f"5-{what}-{number:03}"
            try:
                self._folder.mkdir(parents=True)
                break
            except FileExistsError:
                number += 1
            except OSError as error:
                raise StagesError(error, self._folder) from None
        self._count = 0

    def write(self, name: str, block: Block) -> None:
        """Write the block as a pass has left it.

        Raises:
            StagesError: it cannot be written.
        """
        from toolkit.compiler.ir.text.printer import print_block

        file = self._folder / f"{self._count:02}-{re.sub(r'[^A-Za-z0-9_]+', '_', name)}.txt"
        try:
            file.write_text(print_block(block), encoding="utf-8")
        except OSError as error:
            raise StagesError(error, file) from None
        self._count += 1
