"""Ragged tensors give TensorFlow's values, are fed and fetched whole, and say what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.tf1 import node_oracle
from toolkit import tensorflow as ours
from toolkit.client.ragged.value import RaggedTensorValue
from toolkit.errors import GraphmillError

_BEFORE = """
rt = tf.ragged.constant([[1, 2, 3], [], [4]])
rt2 = tf.RaggedTensor.from_row_lengths([1.0, 2.0, 3.0, 4.0], [1, 0, 3])
d3 = tf.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])
st = tf.ragged.constant([["a b", "c"], [], ["d"]])
"""
#: expressions of these, of which one graph with all of them is run in each library
_VALUES = """
rt
rt2
d3
rt+1
rt*rt
1-rt
-rt
rt2/2
rt>1
rt+[[10],[20],[30]]
d3+1
rt[0]
rt[1:]
rt[:, :2]
rt[:, 1:]
rt[:, -2:]
rt[::2]
d3[0]
d3[:, :1]
d3[:, :, 0:1]
d3[0,0]
rt[2][0]
rt[...,:1]
rt.to_tensor()
rt.to_tensor(-1)
rt.to_tensor(-1, shape=[4,2])
d3.to_tensor()
rt.to_sparse()
rt.row_lengths()
rt.value_rowids()
rt.nrows()
rt.bounding_shape()
d3.bounding_shape()
d3.row_lengths(axis=2)
d3.nested_row_lengths()
d3.merge_dims(0,1)
d3.merge_dims(1,2)
tf.RaggedTensor.from_value_rowids([1,2,3],[0,0,2],4)
tf.RaggedTensor.from_row_splits([1,2,3],[0,1,1,3])
tf.RaggedTensor.from_row_starts([1,2,3],[0,1,1])
tf.RaggedTensor.from_row_limits([1,2,3],[0,1,3])
tf.RaggedTensor.from_uniform_row_length([1,2,3,4],2)
tf.RaggedTensor.from_nested_row_lengths([1,2,3],[[2,0],[1,2]])
tf.RaggedTensor.from_nested_value_rowids([1,2,3],[[0,0,1],[0,0,2]])
tf.RaggedTensor.from_tensor([[1,2,0],[3,0,0]], padding=0)
tf.RaggedTensor.from_tensor([[1,2,0],[3,0,0]], lengths=[2,1])
tf.RaggedTensor.from_tensor([[[1,2],[3,4]]], ragged_rank=2)
tf.RaggedTensor.from_tensor(tf.zeros([2,3,4]))
tf.RaggedTensor.from_sparse(tf.SparseTensor([[0,0],[0,1],[2,0]],[1,2,3],[3,3]))
tf.reduce_sum(rt)
tf.reduce_sum(rt,axis=1)
tf.reduce_sum(rt,axis=0)
tf.reduce_sum(d3,axis=1)
tf.reduce_sum(d3,axis=2)
tf.reduce_sum(d3,axis=0)
tf.reduce_sum(d3,axis=[1,2])
tf.reduce_mean(rt2[0:1],axis=1)
tf.reduce_max(rt,axis=0)
tf.reduce_prod(rt,axis=1)
tf.reduce_min(rt2,axis=0)
tf.reduce_any(rt>2,axis=1)
tf.reduce_all(rt>1,axis=1)
tf.concat([rt,rt],0)
tf.concat([rt,rt],1)
tf.concat([rt,[[7],[8],[9]]],1)
tf.stack([rt,rt])
tf.stack([rt,rt],axis=1)
tf.concat([d3,d3],2)
tf.ragged.stack([[1,2],[3]])
tf.ragged.stack([rt,rt],axis=1)
tf.gather(rt,[2,0])
tf.gather(rt,[[2,0]])
tf.gather([10,20,30,40,50],rt)
tf.gather(d3,[0,2])
tf.where(rt>1)
tf.where(rt>1,rt,rt*10)
tf.ragged.boolean_mask(rt,rt>1)
tf.ragged.boolean_mask([[1,2,3],[4,5,6]],[[True,False,True],[False,False,True]])
tf.expand_dims(rt,0)
tf.expand_dims(rt,1)
tf.expand_dims(rt,2)
tf.size(rt)
tf.rank(d3)
tf.reverse(rt,axis=[1])
tf.cast(rt,tf.float32)
tf.exp(rt2)
tf.square(rt)
tf.maximum(rt,2)
tf.add(rt,rt)
tf.ones_like(rt)
tf.ragged.map_flat_values(tf.multiply,rt,3)
tf.ragged.range([2,0,3])
tf.ragged.range([0,5],[3,9],2)
tf.ragged.row_splits_to_segment_ids([0,3,3,5])
tf.ragged.segment_ids_to_row_splits([0,0,0,2,2])
tf.ragged.segment_ids_to_row_splits([0,0,2],5)
tf.ragged.stack_dynamic_partitions(['a','b','c','d'],[1,0,1,2],4)
tf.ragged.stack_dynamic_partitions(rt,[1,0,1],2)
tf.ragged.cross([tf.ragged.constant([['a'],['b','c']]),tf.ragged.constant([['d','e'],['f']])])
tf.ragged.cross_hashed([tf.ragged.constant([['a'],['b','c']]),[['d'],['f']]],num_buckets=100)
tf.ragged.constant([[1,2],[3]],ragged_rank=1,row_splits_dtype=tf.int32)
tf.ragged.constant([[[1,2]],[[3,4],[5,6]]],inner_shape=(2,))
tf.strings.split(['a b c','d']).values
tf.strings.split(['a b c','d'],result_type='RaggedTensor')
tf.strings.split('a,b,,c',',',result_type='RaggedTensor')
tf.strings.split([['a b'],['c d e']],result_type='RaggedTensor')
tf.string_split(['a b  c','d']).values
tf.string_split(['a-b','c'],'-',result_type='RaggedTensor')
tf.strings.bytes_split(['abc','de'])
tf.strings.bytes_split('abc')
tf.strings.bytes_split([['abc'],['de']])
tf.strings.unicode_decode(['Gö','x'],'UTF-8')
tf.strings.unicode_decode('Gö','UTF-8')
tf.strings.unicode_decode_with_offsets(['Gö','x'],'UTF-8')
tf.strings.unicode_split(['Gö','x'],'UTF-8')
tf.strings.unicode_split('Gö','UTF-8')
tf.strings.unicode_split_with_offsets([['Gö'],['x']],'UTF-8')
tf.strings.unicode_encode([71,246],'UTF-8')
tf.strings.unicode_encode([[71,246],[72,73]],'UTF-16-BE')
tf.strings.unicode_encode(tf.ragged.constant([[71],[72,73]]),'UTF-8')
tf.strings.ngrams(['a','b','c'],2)
tf.strings.ngrams([['a','b','c'],['d','e','f']],[1,2],separator='-')
tf.strings.ngrams(tf.ragged.constant([['a','b'],['c']]),2,pad_values=('<','>'))
tf.strings.ngrams(tf.ragged.constant([['a','b'],['c']]),3,pad_values='x',padding_width=1,preserve_short_sequences=True)
tf.strings.format('x {} y',tf.constant([1,2,3]))
tf.strings.format('x {} y {}',[tf.constant([1,2,3]),tf.constant('s')])
tf.strings.upper(st)
tf.strings.length(st)
tf.strings.to_hash_bucket_fast(st, 10)
tf.strings.reduce_join(['a','b'])
""".strip().splitlines()


def _plain(value: Any) -> Any:
    """Lists, with types, of whatever a session gives."""
    if hasattr(value, "to_list"):
        return value.to_list(), str(value.flat_values.dtype), str(value.row_splits.dtype)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]  # type: ignore[misc]
    return np.asarray(value).tolist()


def _run(tf: Any) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        names = {"tf": tf, "np": np}
        exec(_BEFORE, names)
        return [_plain(value) for value in session.run([eval(code, names) for code in _VALUES])]


def _check(code: str, got: Any, wanted: Any) -> None:
    if isinstance(wanted, list | tuple):
        listed: list[Any] = list(wanted)  # type: ignore[arg-type]
        assert len(got) == len(listed), f"{code}: {got} for {listed}"
        for one, other in zip(got, listed, strict=True):
            _check(code, one, other)
    elif isinstance(wanted, float):
        # the exponential of either library is within two units in the last place of the exact one
        assert got == pytest.approx(wanted, rel=tolerance.gamma(4)), code
    else:
        assert got == wanted, code


@pytest.mark.tensorflow
def test_ragged_tensors_give_tensorflows_values() -> None:
    got = _run(ours)
    with node_oracle.semantics():
        wanted = _run(node_oracle.theirs())
    for code, one, other in zip(_VALUES, got, wanted, strict=True):
        _check(code, one, other)


def test_a_ragged_tensor_is_fed_and_fetched_whole() -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.ragged.placeholder(tf.int32, 2)
        value = tf.ragged.constant_value([[[1], [2, 3]], []], np.int32)
        same, total = session.run([x, tf.reduce_sum(x, axis=2)], {x: value})
        assert isinstance(same, RaggedTensorValue)
        assert same.to_list() == [[[1], [2, 3]], []]
        assert total.to_list() == [[1, 5], []]
        assert (same.ragged_rank, same.shape, len(same.nested_row_splits)) == (2, (2, None, None), 2)
        assert x.eval({x: value}, session).values.to_list() == [[1], [2, 3]]


def test_a_function_without_ragged_tensors_is_what_it_was() -> None:
    tf = ours
    with tf.Graph().as_default():
        assert tf.add(tf.constant(1), 2).op.type == "AddV2"
        assert tf.boolean_mask(tf.ragged.constant([[1], [2]]), [True, False]).ragged_rank == 1


_WRONG: dict[str, tuple[str, str]] = {
    "constructor": ("tf.RaggedTensor([1], [0, 1])", "made by one of its methods"),
    "splits": ("tf.RaggedTensor.from_row_splits([1], [])", "at least"),
    "float splits": ("tf.RaggedTensor.from_row_splits([1], tf.constant([0.5]))", "expected int32 or int64"),
    "number": ("tf.RaggedTensor.from_row_lengths(1, [1])", "expected the values of all rows"),
    "rows": ("tf.RaggedTensor.from_value_rowids([1], [3], 2)", "nrows: expected 4 rows or more"),
    "lengths": ("tf.RaggedTensor.from_nested_row_splits([1], tf.constant([0]))", "expected a list"),
    "vector": ("tf.RaggedTensor.from_tensor([1, 2])", "expected 2 axes or more"),
    "both": ("tf.RaggedTensor.from_tensor([[1]], lengths=[1], padding=0)", "not both"),
    "depth": ("tf.ragged.constant([1, [2]])", "one depth"),
    "inner": ("tf.ragged.constant([[[1, 2]], [[3]]], ragged_rank=1)", "different shapes"),
    "index": ("tf.ragged.constant([[1], [2, 3]])[:, 0]", "cannot index rows that may be shorter"),
    "values": ("tf.ragged.constant([[1], [2]]).with_values([1])", "expected 2 values, got 1"),
    "axis": ("tf.reduce_sum(tf.ragged.constant([[1]]), axis=2)", "expected a number from -2 to 1"),
    "where": ("tf.where(tf.ragged.constant([[True]]), 1)", "both x and y"),
    "value": ("tf.ragged.constant([[1]]).to_list()", "no value while the graph is built"),
    "result": ("tf.strings.split(['a'], result_type='list')", "result_type: expected"),
    "ngrams": ("tf.strings.ngrams(['a'], 0)", "expected 1 or more"),
    "format": ("tf.strings.format('{} {}', [1])", "2 places"),
    "code points": ("tf.strings.unicode_encode(3, 'UTF-8')", "got one number"),
    "gather": ("tf.gather(tf.ragged.constant([[1]]), [0], axis=1)", "along the first axis"),
}


@pytest.mark.parametrize("case", _WRONG)
def test_what_is_refused(case: str) -> None:
    code, message = _WRONG[case]
    with ours.Graph().as_default(), pytest.raises((ValueError, TypeError, GraphmillError), match=message):
        eval(code, {"tf": ours})


def test_rows_of_other_lengths_fail_in_the_step() -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.ragged.placeholder(tf.int32, 1), tf.ragged.constant([[1, 2], [3]])
        total = x + y
        with pytest.raises(tf.errors.InvalidArgumentError, match="differ in length"):
            session.run(total, {x: tf.ragged.constant_value([[1], [2, 3]], np.int32)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="differ in length"):
            _ = tf.ragged.constant([[1], [2, 3]]) + y
