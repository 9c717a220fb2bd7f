"""Words and categories as numbers: what is expected is what TensorFlow 1.15 gives for these documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolkit.client.lookup.documents import (
    ByteProcessor,
    CategoricalProcessor,
    CategoricalVocabulary,
    VocabularyProcessor,
    tokenizer,
)

TEXTS = ["hello big World", "big big deal here now", "TensorFlow's IDs re-read NASAProgram"]


def test_words() -> None:
    assert list(tokenizer(TEXTS))[2] == ["Tensor", "Flow's", "IDs", "re-read", "NASA", "Program"]


def test_texts_become_rows_and_rows_texts(tmp_path: Path) -> None:
    processor = VocabularyProcessor(4)
    rows = list(processor.fit_transform(TEXTS[:2]))
    np.testing.assert_array_equal(rows, [[1, 2, 3, 0], [2, 2, 4, 5]])
    assert rows[0].dtype == np.int64
    assert len(processor.vocabulary_) == 7
    assert list(processor.reverse(rows)) == ["hello big World <UNK>", "big big deal here"]
    processor.save(str(tmp_path / "vocabulary"))
    again = VocabularyProcessor.restore(str(tmp_path / "vocabulary"))
    np.testing.assert_array_equal(list(again.transform(["big nothing now"])), [[2, 0, 6, 0]])


def test_rare_words_go_and_frequent_ones_come_first() -> None:
    processor = VocabularyProcessor(5, min_frequency=1)
    rows = list(processor.fit_transform([*TEXTS[:2], "now World"]))
    np.testing.assert_array_equal(rows, [[0, 1, 2, 0, 0], [1, 1, 0, 0, 3], [3, 2, 0, 0, 0]])
    assert processor.vocabulary_.reverse(1) == "big"
    assert [processor.vocabulary_.get(word) for word in ("World", "now", "hello")] == [2, 3, 0]


def test_a_vocabulary_without_its_reverse() -> None:
    with pytest.raises(ValueError, match="support_reverse=True"):
        CategoricalVocabulary(support_reverse=False).reverse(0)


def test_bytes() -> None:
    rows = list(ByteProcessor(4).fit_transform(["hey", b"longer"]))
    np.testing.assert_array_equal(rows, [[104, 101, 121, 0], [108, 111, 110, 103]])
    assert list(ByteProcessor(4).reverse(rows)) == ["hey", "long"]


def test_categories() -> None:
    rows = [["a", "x"], ["b", float("nan")], ["a", ""]]
    np.testing.assert_array_equal(list(CategoricalProcessor().fit_transform(rows)), [[1, 1], [2, 0], [1, 2]])
    np.testing.assert_array_equal(list(CategoricalProcessor(share=True).fit_transform(rows)), [[1, 2], [3, 0], [1, 4]])
    with pytest.raises(ValueError, match="call fit first"):
        list(CategoricalProcessor().transform(rows))
