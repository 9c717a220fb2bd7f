"""Classes of TensorFlow's names have its public methods and properties, or a reason why not."""

from __future__ import annotations

import inspect
import re

import pytest

from toolkit.tensorflow import api, names

CLASSES = [
    fact
    for name in api.names()
    if (fact := api.fact(name)) is not None and fact.kind == "class" and fact.canonical == name
    and isinstance(names.find(name), type)
]  # fmt: skip

_DATA_OF_2 = "came with TensorFlow 2's input pipelines"
_OF_2_21 = "came with TensorFlow 2's types and graphs in C++; programs of 1.x do not know it"
#: a class and its members that are not here, and why
WITHOUT: dict[str, dict[str, str]] = {
    "dtypes.DType": dict.fromkeys(
        ["cast", "experimental_as_proto", "experimental_from_proto", "experimental_type_proto", "flatten",
         "from_tensors", "is_numeric", "is_subtype_of", "most_specific_common_supertype", "placeholder_value",
         "to_tensors"],
        _OF_2_21,
    ),
    **dict.fromkeys(
        ["data.Dataset", "data.FixedLengthRecordDataset", "data.TFRecordDataset", "data.TextLineDataset"],
        dict.fromkeys(
            ["fingerprint", "load", "ragged_batch", "rebatch", "rejection_resample", "save", "snapshot"], _DATA_OF_2
        ),
    ),
    "Graph": dict.fromkeys(["Dismantle", "get", "new_operations", "num_operations", "operations"], _OF_2_21),
    "Operation": dict.fromkeys(["experimental_set_type", "from_node_def"], _OF_2_21)
    | {"traceback": "where a node was made is not kept: it would take as long as making it"},
    "train.queue_runner.QueueRunner": {
        "queue_closed_exception_types": "what ends a runner is OutOfRangeError and CancelledError"
    },
    **dict.fromkeys(
        ["TypeSpec", "TensorSpec", "SparseTensorSpec", "RaggedTensorSpec", "IndexedSlicesSpec", "TensorArraySpec",
         "NoneTensorSpec", "OptionalSpec", "data.DatasetSpec"],
        dict.fromkeys(
            ["cast", "experimental_as_proto", "experimental_from_proto", "experimental_type_proto", "flatten",
             "from_tensors", "is_subtype_of", "most_specific_common_supertype", "placeholder_value", "to_tensors"],
            _OF_2_21,
        ),
    ),
    "test.TestCase": dict.fromkeys(
        ["assertCommandFails", "assertCommandSucceeds", "assertContainsExactSubsequence", "assertContainsInOrder",
         "assertContainsSubsequence", "assertDataclassEqual", "assertJsonEqual", "assertMappingEqual",
         "assertSameStructure", "assertSequenceStartsWith", "assertTotallyOrdered", "assertUrlEqual", "create_tempdir",
         "create_tempfile", "enter_context", "get_recorded_properties", "record_property", "tempfile_cleanup"],
        "absl's own; programs that test call those of TensorFlow and unittest",
    ),
    "TensorShape": dict.fromkeys(
        ["cast", "experimental_as_proto", "experimental_from_proto", "experimental_type_proto", "flatten",
         "from_tensors", "placeholder_value", "to_tensors"],
        _OF_2_21,
    ),
    "Variable": dict.fromkeys(["aggregation", "synchronization"], "there is one copy of each variable")
    | {"batch_scatter_update": "tf.batch_scatter_update does it, where that is here"},
}  # fmt: skip


def _members(fact: api.Fact) -> set[str]:
    return {member.name.rpartition(".")[2] for member in api.members(fact.name)}


@pytest.mark.parametrize("fact", CLASSES, ids=lambda fact: fact.name)
def test_classes_have_their_members(fact: api.Fact) -> None:
    value = names.find(fact.name)
    known = {name for each in value.__mro__ for name in _set_by_constructor(each)}
    lacking = {name for name in _members(fact) if not hasattr(value, name) and name not in known}
    assert lacking == set(WITHOUT.get(fact.name, {}))


def _set_by_constructor(cls: type) -> set[str]:
    """Attributes that only instances have: annotated, assigned, or rows of a table of fields."""
    if cls.__module__ == "builtins":
        return set()
    assigned = re.findall(r"self\.(\w+)\s*(?::[^=\n]+)?=", inspect.getsource(cls))
    return {
        *getattr(cls, "__annotations__", {}),
        *assigned,
        *getattr(cls, "FIELDS", ()),
        *getattr(cls, "_OTHER_NAMES", ()),
    }


def test_reasons_are_about_members() -> None:
    assert {name for name in WITHOUT if api.fact(name) is None} == set()
