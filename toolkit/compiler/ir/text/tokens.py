"""The words of the text form, each with where it stands."""

from __future__ import annotations

import ast
import enum
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from toolkit.errors import GraphmillError

_WORD = re.compile(
    r"""(?P<space>[ \t\r]+|//[^\n]*)
    |(?P<line>\n)
    |(?P<digest>sha256:[0-9a-f]{16})
    |(?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|(?:inf|nan)\b)
    |(?P<text>b?'(?:[^'\\\n]|\\.)*'|b?"(?:[^"\\\n]|\\.)*")
    |(?P<name>[A-Za-z_][A-Za-z0-9_.]*)
    |(?P<value>%\d+)
    |(?P<shared>\#\d+)
    |(?P<mark>\.\.\.|[()\[\]{},=:?*@~])""",
    re.VERBOSE,
)


class WordKind(enum.Enum):
    """What a word is, by the name of its group in the pattern above."""

    NUMBER = "number"
    TEXT = "text"
    NAME = "name"
    VALUE = "value"
    SHARED = "shared"
    DIGEST = "digest"
    MARK = "mark"
    END = "end"


#: what kinds of words are called in messages
_CALLED = {
    WordKind.NUMBER: "a number", WordKind.TEXT: "a text in quotes", WordKind.NAME: "a name",
    WordKind.VALUE: "a value such as %0", WordKind.SHARED: "a number such as #1", WordKind.DIGEST: "a digest",
    WordKind.END: "the end",
}  # fmt: skip


class TextError(GraphmillError):
    """A text is not that of a program: where, what is there, and what was expected."""


@dataclass(frozen=True, slots=True)
class Word:
    """Attributes:
    line, column: counted from 1.
    """

    kind: WordKind
    text: str
    line: int
    column: int


class Words:
    """The words of a text, taken one after the other.

    Attributes:
        position: how many words were taken; it may be set.

    Args:
        source: what messages call the text.

    Raises:
        TextError: there is something that is no word.
    """

    def __init__(self, text: str, source: str):
        self._source = source
        self._words: list[Word] = []
        self.position = 0
        line, start, position = 1, 0, 0
        while position < len(text):
            found = _WORD.match(text, position)
            if found is None:
                self._refuse(Word(WordKind.MARK, text[position], line, position - start + 1), "a word of the text form")
            kind = found.lastgroup
            if kind == "line":
                line, start = line + 1, found.end()
            elif kind is not None and kind != "space":
                self._words.append(Word(WordKind(kind), found.group(), line, position - start + 1))
            position = found.end()
        self._words.append(Word(WordKind.END, "the end", line, position - start + 1))

    @property
    def next(self) -> Word:
        """The next word, which stays."""
        return self._words[self.position]

    def find(self, *texts: str) -> int | None:
        """Where these words follow each other first, as a position; None where they do not."""
        for index in range(len(self._words)):
            if tuple(word.text for word in self._words[index : index + len(texts)]) == texts:
                return index
        return None

    def is_next(self, *texts: str) -> bool:
        """Whether the next word is one of these marks or names."""
        word = self.next
        return word.kind in (WordKind.MARK, WordKind.NAME) and word.text in texts

    def take(self) -> Word:
        """The next word."""
        word = self.next
        self.position = min(self.position + 1, len(self._words) - 1)
        return word

    def skip(self, text: str) -> bool:
        """Take the next word if it is this one; says whether it was."""
        if not self.is_next(text):
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> Word:
        """Take the next word, which must be this one.

        Raises:
            TextError: it is another.
        """
        if not self.is_next(text):
            self._refuse(self.next, f"'{text}'")
        return self.take()

    def expect_kind(self, kind: WordKind) -> Word:
        """Take the next word, which must be of this kind.

        Raises:
            TextError: it is of another.
        """
        if self.next.kind is not kind:
            self._refuse(self.next, _CALLED[kind])
        return self.take()

    def refuse(self, expected: str) -> NoReturn:
        """Say that something else was expected in the place of the next word.

        Raises:
            TextError: always.
        """
        self._refuse(self.next, expected)

    def wrong(self, word: Word, message: str) -> TextError:
        """What is wrong with a word that stands where it may."""
        return TextError(f"{self._source}:{word.line}:{word.column}: {message}")

    def _refuse(self, word: Word, expected: str) -> NoReturn:
        found = word.text if word.kind is WordKind.END else f"'{word.text}'"
        raise self.wrong(word, f"expected {expected}, found {found}")


def plain_text(word: Word) -> Any:
    """The str or bytes that a word of the kind TEXT stands for."""
    return ast.literal_eval(word.text)


def number_of(word: Word) -> int | float:
    """The number that a word of the kind NUMBER stands for."""
    is_whole = re.fullmatch(r"-?\d+", word.text) is not None and word.text != "-0"  # which floats have only
    return int(word.text) if is_whole else float(word.text)
