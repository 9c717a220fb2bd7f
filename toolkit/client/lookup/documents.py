"""Words and categories as numbers, found by reading documents once: tf.contrib.learn.preprocessing.

Nothing here makes nodes: documents become arrays, which programs feed.
"""

from __future__ import annotations

import itertools
import pickle
import re
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Self

#: an abbreviation, a capitalised word before another, or letters, digits, apostrophes and hyphens
TOKENIZER_RE = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+")


def tokenizer(iterator: Iterable[str]) -> Generator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield TOKENIZER_RE.findall(text)


class CategoricalVocabulary:
    """Categories in the order in which they came, from 1; 0 is what is not known.

    Args:
        unknown_token: what 0 stands for.
        support_reverse: whether `reverse` is wanted.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True):
        self._unknown = unknown_token
        self._ids: dict[Any, int] = {unknown_token: 0}
        self._categories: list[Any] | None = [unknown_token] if support_reverse else None
        self._counts: dict[Any, int] = {}
        self._frozen = False

    def __len__(self) -> int:
        return len(self._ids)

    def freeze(self, freeze: bool = True) -> None:
        """From now on nothing is added (or is again)."""
        self._frozen = freeze

    def get(self, category: Any) -> int:
        """The number of a category; a new one gets the next, or 0 when the vocabulary is frozen."""
        if category not in self._ids:
            if self._frozen:
                return 0
            self._ids[category] = len(self._ids)
            if self._categories is not None:
                self._categories.append(category)
        return self._ids[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Count a category."""
        if self.get(category) > 0:
            self._counts[category] = self._counts.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Leave out what came at most `min_frequency` times, or `max_frequency` times or more (-1: no bound).

        What stays is numbered anew, the most frequent first, and by their order where frequencies are the same.
        """
        by_name = sorted(self._counts.items(), key=lambda each: (isinstance(each[0], str), each[0]))
        by_count = sorted(by_name, key=lambda each: each[1], reverse=True)
        kept = [
            (category, count)
            for category, count in by_count
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        self._counts = dict(kept)
        self._ids = {self._unknown: 0} | {category: i for i, (category, _) in enumerate(kept, 1)}
        if self._categories is not None:
            self._categories = [self._unknown, *self._counts]

    def reverse(self, class_id: int) -> Any:
        """The category of a number.

        Raises:
            ValueError: the vocabulary was made without it.
        """
        if self._categories is None:
            raise ValueError("the vocabulary does not know categories by number; make it with support_reverse=True")
        return self._categories[class_id]


class _Processor:
    """What learns from documents, then makes arrays of them."""

    def fit(self, raw_documents: Any, unused_y: Any = None) -> Self:
        raise NotImplementedError

    def transform(self, raw_documents: Any) -> Generator[Any]:
        raise NotImplementedError

    def fit_transform(self, raw_documents: Any, unused_y: Any = None) -> Generator[Any]:
        """Both, one after the other."""
        return self.fit(raw_documents).transform(raw_documents)


class VocabularyProcessor(_Processor):
    """Texts as the numbers of their words, all of one length: the rest is cut off, what lacks is 0.

    Args:
        max_document_length: words of each text.
        min_frequency: words that come at most so often are left out.
        vocabulary: a `CategoricalVocabulary` to start with.
        tokenizer_fn: from texts to lists of words.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[list[str]]] | None = None,
    ):
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = CategoricalVocabulary() if vocabulary is None else vocabulary
        self._tokenizer = tokenizer if tokenizer_fn is None else tokenizer_fn

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> Self:
        """Learn the words of texts, and no others from then on."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def transform(self, raw_documents: Iterable[str]) -> Generator[Any]:
        """An int64 array [max_document_length] for each text."""
        import numpy as np

        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for i, word in enumerate(itertools.islice(words, self.max_document_length)):
                row[i] = self.vocabulary_.get(word)
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Generator[str]:
        """Texts of numbers."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(class_id) for class_id in row)

    def save(self, filename: str) -> None:
        """Write it to a file, for `restore`."""
        Path(filename).write_bytes(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> Any:
        """What `save` wrote. It is a pickle: read only what your own program wrote."""
        return pickle.loads(Path(filename).read_bytes())


class ByteProcessor(_Processor):
    """Texts as their bytes in UTF-8.

    Args:
        max_document_length: bytes of each text; the rest is cut off, what lacks is 0.
    """

    def __init__(self, max_document_length: int):
        self.max_document_length = max_document_length

    def fit(self, raw_documents: Any, unused_y: Any = None) -> Self:
        """There is nothing to learn."""
        return self

    def transform(self, raw_documents: Iterable[str | bytes]) -> Generator[Any]:
        """A uint8 array [max_document_length] for each text."""
        import numpy as np

        for text in raw_documents:
            data = text.encode() if isinstance(text, str) else bytes(text)
            row = np.zeros(self.max_document_length, np.uint8)
            shown = data[: self.max_document_length]
            row[: len(shown)] = np.frombuffer(shown, np.uint8)
            yield row

    def reverse(self, documents: Iterable[Any]) -> Generator[str]:
        """Texts of bytes; what is no UTF-8 becomes an empty text."""
        for row in documents:
            data = bytes(row).rstrip(b"\0")
            try:
                yield data.decode()
            except UnicodeDecodeError:
                yield ""


class CategoricalProcessor(_Processor):
    """Rows of categories as rows of numbers, with a vocabulary for each column.

    Args:
        min_frequency: categories that come at most so often are left out.
        share: one vocabulary for all columns.
        vocabularies: those to start with, one for each column.
    """

    def __init__(self, min_frequency: int = 0, share: bool = False, vocabularies: Any = None):
        self.min_frequency = min_frequency
        self.share = share
        self.vocabularies_: Any = vocabularies

    def freeze(self, freeze: bool = True) -> None:
        """From now on no category is added (or is again)."""
        for vocabulary in self.vocabularies_:
            vocabulary.freeze(freeze)

    def fit(self, raw_documents: Iterable[Any], unused_y: Any = None) -> Self:
        """Learn the categories of rows, and no others from then on."""
        for row in raw_documents:
            if self.vocabularies_ is None:
                one = CategoricalVocabulary()
                self.vocabularies_ = [one if self.share else CategoricalVocabulary() for _ in row]
            for vocabulary, value in zip(self.vocabularies_, row, strict=False):
                if not _is_missing(value):
                    vocabulary.add(value)
        if self.min_frequency > 0:
            for vocabulary in self.vocabularies_ or ():
                vocabulary.trim(self.min_frequency)
        if self.vocabularies_ is not None:
            self.freeze()
        return self

    def transform(self, raw_documents: Iterable[Any]) -> Generator[Any]:
        """An int64 array for each row; 0 for what is not known or missing."""
        import numpy as np

        if self.vocabularies_ is None:
            raise ValueError("the processor has seen no rows yet; call fit first")
        for row in raw_documents:
            numbers = np.zeros(len(row), np.int64)
            for i, (vocabulary, value) in enumerate(zip(self.vocabularies_, row, strict=False)):
                numbers[i] = 0 if _is_missing(value) else vocabulary.get(value)
            yield numbers


def _is_missing(value: Any) -> bool:
    """Whether a value is NaN, as frames have it where nothing is."""
    return value != value


def setup_processor_data_feeder(x: Any) -> Any:
    """Rows as they are: frames of dask are not looked into."""
    return x
