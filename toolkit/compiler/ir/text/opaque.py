"""What is no data in the text form: it is called by its class and name, and stands beside the text.

These are variables and handles, functions that were compiled or made at compile time (`UpdateVariable.run`, the
functions of rows, of quantized tensors), and a loop's code once it is compiled.
"""

from __future__ import annotations

from typing import Any

from toolkit.compiler.ir.text.arrays import SideTable
from toolkit.compiler.ir.text.tokens import WordKind, Words, plain_text


class Opaque:
    """Names what is no data, for one program."""

    def __init__(self, beside: SideTable):
        self._beside = beside
        self._names: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._kept: list[Any] = []  # so that no other thing is given the same id

    def name(self, thing: Any) -> str:
        """The text of a thing; it says nothing of where in memory that is."""
        known = self._names.get(id(thing))
        if known is not None:
            return known
        self._kept.append(thing)
        called = getattr(thing, "name", None)
        text = f"@{type(thing).__name__}" + (f"({called!r})" if isinstance(called, str) else "")
        count = self._counts[text] = self._counts.get(text, 0) + 1
        text += f"~{count}" if count > 1 else ""
        self._names[id(thing)] = text
        self._beside.objects[text] = thing
        return text

    @staticmethod
    def read(words: Words, beside: SideTable) -> Any:
        """The thing whose text stands at the next words.

        Raises:
            TextError: it is not beside the text.
        """
        words.expect("@")
        first = words.expect_kind(WordKind.NAME)
        text = f"@{first.text}"
        if words.skip("("):
            text += f"({plain_text(words.expect_kind(WordKind.TEXT))!r})"
            words.expect(")")
        if words.skip("~"):
            text += f"~{words.expect_kind(WordKind.NUMBER).text}"
        if text not in beside.objects:
            raise words.wrong(first, f"{text} is no data and does not stand beside the text")
        return beside.objects[text]
