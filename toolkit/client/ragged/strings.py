"""Texts taken apart: words, bytes, characters, n-grams; each text gives as many as it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.ragged.arrays import expand_dims
from toolkit.client.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes

_REPLACEMENT = 65533


def _rank(value: Any, what: str = "input") -> int:
    rank = value.static_shape.rank
    if rank is None:
        raise ValueError(f"{what}: '{value.name}' has an unknown rank; set_shape says it")
    return rank


def _texts(value: Any) -> tuple[str, Any]:
    return "input", convert_to_tensor_or_ragged_tensor(value, dtypes.string, name="input")


def _rows_of(sparse: SparseTensor) -> RaggedTensor:
    """A sparse matrix of the op as ragged rows."""
    rows = sparse.indices[:, 0]
    return RaggedTensor.from_value_rowids(sparse.values, rows, sparse.dense_shape[0], validate=False)


def _sparse(found: Any) -> SparseTensor:
    indices, values, shape = found
    indices.set_shape([None, 2])
    values.set_shape([None])
    shape.set_shape([2])
    return SparseTensor(indices, values, shape)


def split_sparse(source: TensorLike, delimiter: TensorLike, skip_empty: bool) -> SparseTensor:
    """Each text of a vector at single characters, [texts, words]."""
    delimiter = convert_to_tensor(delimiter, dtypes.string)
    source = convert_to_tensor(source, dtypes.string)
    return _sparse(ops.string_split(source, delimiter, skip_empty=skip_empty))


def split_whole_sparse(source: TensorLike, sep: TensorLike, maxsplit: int) -> SparseTensor:
    """Each text of a vector at whole separators, or at whitespace, [texts, words]."""
    sep = convert_to_tensor("" if sep is None else sep, dtypes.string)
    source = convert_to_tensor(source, dtypes.string)
    return _sparse(ops.string_split_v2(source, sep, maxsplit=maxsplit))


def split(input: TensorLike, sep: TensorLike = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The words of texts, ragged."""
    with name_scope(name, "StringSplit"):
        _, texts = _texts(input)
        if isinstance(texts, RaggedTensor):
            return texts.with_flat_values(split(texts.flat_values, sep, maxsplit))
        rank = texts.static_shape.rank
        if rank == 0:
            return split(array_ops.stack([texts]), sep, maxsplit)[0]
        if rank in (1, None):
            return _rows_of(split_whole_sparse(texts, sep, maxsplit))
        return split(RaggedTensor.from_tensor(texts), sep, maxsplit)


def bytes_split(input: TensorLike, name: str | None = None) -> Any:
    """The bytes of texts, ragged."""
    with name_scope(name, "StringsByteSplit"):
        texts = convert_to_tensor_or_ragged_tensor(input, name="input")
        if isinstance(texts, RaggedTensor):
            return texts.with_flat_values(bytes_split(texts.flat_values))
        rank = _rank(texts)
        if rank == 0:
            return bytes_split(array_ops.stack([texts]))[0]
        if rank > 1:
            return bytes_split(RaggedTensor.from_tensor(texts))
        indices, values, shape = ops.string_split(texts, "", skip_empty=False)
        return RaggedTensor.from_value_rowids(values, indices[:, 0], shape[0], validate=False)


# -- characters ------------------------------------------------------------------------------------------------------


def unicode_decode(
    input: TensorLike, input_encoding: str, errors: str = "replace", replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The code points of texts, int32, ragged along a new axis."""
    with name_scope(name, "UnicodeDecode"):
        return _decoded(input, input_encoding, errors, replacement_char, replace_control_characters, False)[0]


def unicode_decode_with_offsets(
    input: TensorLike, input_encoding: str, errors: str = "replace", replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The code points of texts, and the byte that each begins at."""
    with name_scope(name, "UnicodeDecodeWithOffsets"):
        return _decoded(input, input_encoding, errors, replacement_char, replace_control_characters, True)


def _decoded(
    input: TensorLike, encoding: str, errors: str, replacement: int, control: bool, offsets: bool
) -> tuple[Any, ...]:
    texts = convert_to_tensor_or_ragged_tensor(input, name="input")
    rank = _rank(texts)
    if rank > 1 and not isinstance(texts, RaggedTensor):
        texts = RaggedTensor.from_tensor(texts, ragged_rank=rank - 1)
    elif isinstance(texts, RaggedTensor) and texts.ragged_rank < rank - 1:
        inner = RaggedTensor.from_tensor(texts.flat_values, ragged_rank=rank - texts.ragged_rank - 1)
        texts = texts.with_flat_values(inner)
    flat = array_ops.reshape(texts.flat_values if isinstance(texts, RaggedTensor) else texts, [-1])
    op = ops.unicode_decode_with_offsets if offsets else ops.unicode_decode
    splits, *found = op(
        flat, input_encoding=encoding, errors=errors, replacement_char=replacement, replace_control_characters=control
    )
    if rank == 0:
        return tuple(found)
    made = [RaggedTensor.from_row_splits(values, splits, validate=False) for values in found]
    return tuple(each if rank == 1 else texts.with_flat_values(each) for each in made)


def unicode_encode(
    input: TensorLike, output_encoding: str, errors: str = "replace", replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Texts of code points: the last axis becomes one text.

    Raises:
        ValueError: there is no axis, or the rank is not known.
    """
    with name_scope(name, "UnicodeEncode"):
        points = convert_to_tensor_or_ragged_tensor(input)
        rank = _rank(points)
        how = (output_encoding, errors, replacement_char)
        if isinstance(points, RaggedTensor):
            if (points.flat_values.static_shape.rank or 1) > 1:
                return points.with_flat_values(unicode_encode(points.flat_values, *how))
            if points.ragged_rank > 1:
                return points.with_values(unicode_encode(points.values, *how))
            return ops.unicode_encode(
                points.values, points.row_splits, output_encoding=output_encoding, errors=errors,
                replacement_char=replacement_char,
            )  # fmt: skip
        if rank == 0:
            raise ValueError("input: expected code points along an axis, got one number")
        if rank == 2:
            return unicode_encode(RaggedTensor.from_tensor(points), *how)
        shape = array_ops.shape(points)
        if rank > 2:
            flat = array_ops.reshape(points, array_ops.stack([-1, shape[-1]]))
            return array_ops.reshape(unicode_encode(flat, *how), shape[:-1])
        rows = array_ops.stack([0, array_ops.shape(points, out_type=dtypes.int32)[0]])
        one = RaggedTensor.from_row_splits(points, rows, validate=False)
        return array_ops.reshape(unicode_encode(one, *how), [])


def unicode_split(
    input: TensorLike, input_encoding: str, errors: str = "replace", replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The characters of texts, as texts, ragged along a new axis."""
    with name_scope(name, "UnicodeSplit"):
        (points,) = _decoded(input, input_encoding, errors, replacement_char, False, False)
        return _characters(points, input_encoding, errors, replacement_char)


def unicode_split_with_offsets(
    input: TensorLike, input_encoding: str, errors: str = "replace", replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The characters of texts, and the byte that each begins at."""
    with name_scope(name, "UnicodeSplitWithOffsets"):
        points, offsets = _decoded(input, input_encoding, errors, replacement_char, False, True)
        return _characters(points, input_encoding, errors, replacement_char), offsets


def _characters(points: Any, encoding: str, errors: str, replacement: int) -> Any:
    alone = expand_dims(points, -1) if isinstance(points, RaggedTensor) else array_ops.expand_dims(points, -1)
    return unicode_encode(alone, encoding, errors, replacement)


# -- n-grams ---------------------------------------------------------------------------------------------------------


def _padding(pad_values: Any) -> tuple[str, str]:
    if pad_values is None:
        return "", ""
    pair = pad_values if isinstance(pad_values, list | tuple) else (pad_values, pad_values)  # type: ignore[misc]
    if len(pair) != 2 or not all(isinstance(each, str | bytes) for each in pair):  # type: ignore[arg-type]
        raise TypeError(f"pad_values: expected a text, a pair of texts or None, got {pad_values!r}")
    return pair[0], pair[1]  # type: ignore[return-value]


def ngrams(
    data: TensorLike, ngram_width: int | Sequence[int], separator: str = " ", pad_values: Any = None,
    padding_width: int | None = None, preserve_short_sequences: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Runs of words joined by a separator, along the last axis.

    Args:
        data: words, [..., words], dense or ragged.
        ngram_width: how many words, or several such numbers.
        pad_values: what stands before and behind the words.
        padding_width: how often, at most; one less than the run where it is None.

    Raises:
        ValueError: widths below 1, a padding width without padding, no axis.
        TypeError: pads that are no texts.
    """
    with name_scope(name, "StringNGrams"):
        left, right = _padding(pad_values)
        widths = list(ngram_width) if isinstance(ngram_width, list | tuple) else [ngram_width]
        if any(width < 1 for width in widths):  # type: ignore[operator]
            raise ValueError(f"ngram_width: expected 1 or more, got {ngram_width}")
        if padding_width is not None and (padding_width < 1 or pad_values is None):
            raise ValueError(f"padding_width: expected 1 or more, together with pad_values, got {padding_width}")
        width = 0 if pad_values is None else -1 if padding_width is None else padding_width
        words = convert_to_tensor_or_ragged_tensor(data, dtypes.string, name="data")
        how = (ngram_width, separator, pad_values, padding_width, preserve_short_sequences, name)
        shape = None
        if isinstance(words, Tensor):
            shape = array_ops.concat([array_ops.shape(words)[:-1], [-1]], 0)
            rank = _rank(words, "data")
            if rank == 0:
                raise ValueError("data: expected words along an axis, got one text")
            if rank == 1:
                return ngrams(RaggedTensor.from_row_starts(words, [0], validate=False), *how)[0]
            words = RaggedTensor.from_tensor(words, ragged_rank=rank - 1)
        if words.ragged_rank > 1:
            made: Any = words.with_values(ngrams(words.values, *how))
        else:
            values, splits = ops.string_n_grams(
                words.flat_values, words.row_splits, separator=separator, ngram_widths=widths, left_pad=left,
                right_pad=right, pad_width=width, preserve_short_sequences=preserve_short_sequences,
            )  # fmt: skip
            made = RaggedTensor.from_row_splits(values, splits, validate=False)
        return made if shape is None else array_ops.reshape(made.flat_values, shape)


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Tensor:
    """A text with tensors written out in the places of a template.

    Raises:
        ValueError: there are more places than tensors, or fewer.
    """
    listed: list[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]  # type: ignore[arg-type]
    places = template.count(placeholder)
    if places != len(listed):
        raise ValueError(f"template: {places} places '{placeholder}' for {len(listed)} tensors")
    return ops.string_format(listed, template=template, placeholder=placeholder, summarize=summarize, name=name)
