"""Every name of TensorFlow 1 is here, with its kind, signature and defaults, or has a row in missing.txt."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from tests.tf1 import coverage
from toolkit import tensorflow as tf
from toolkit.tensorflow import api, names
from toolkit.tensorflow.tables import FAMILIES, missing

FACTS = [fact for name in (*api.names(), *api.dropped()) if (fact := api.fact(name)) is not None]
HERE = [fact for fact in FACTS if names.find(fact.name) is not names.ABSENT]


def test_every_name_is_here_or_has_a_reason() -> None:
    lost = [fact.name for fact in FACTS if fact not in HERE and missing.row_of(fact.canonical) is None]
    assert not lost, "neither here nor in missing.txt: " + " ".join(lost)


def test_no_row_of_missing_is_about_a_name_that_is_here() -> None:
    here = {fact.canonical for fact in HERE}
    stale = [row for row in missing.rows() if row in here]
    stale += [row for row in missing.rows() if row.endswith(".*") and any(n.startswith(row[:-1]) for n in here)]
    assert not stale, "here by now, so their rows go: " + " ".join(stale)


def test_rows_of_missing_have_reasons() -> None:
    assert not [row for row, reason in missing.rows().items() if not reason]


@pytest.mark.parametrize("fact", [f for f in HERE if f.kind in ("function", "op")], ids=lambda f: f.name)
def test_functions_have_the_signatures_of_tensorflow(fact: api.Fact) -> None:
    wanted = shown(api.signature_of(fact.signature, names.find))
    assert _as_of(fact, shown(inspect.signature(names.find(fact.name))), wanted) == wanted


@pytest.mark.parametrize("fact", [f for f in HERE if f.kind == "class"], ids=lambda f: f.name)
def test_classes_have_the_signatures_of_tensorflow(fact: api.Fact) -> None:
    value = names.find(fact.name)
    assert isinstance(value, type)
    if fact.signature and not {fact.name, fact.canonical} & coverage.OTHER_SIGNATURES.keys():
        wanted = shown(api.signature_of(fact.signature, names.find))
        assert _as_of(fact, shown(inspect.signature(value)), wanted) == wanted


def _as_of(
    fact: api.Fact, got: list[tuple[str, str, str]], wanted: list[tuple[str, str, str]]
) -> list[tuple[str, str, str]]:
    """An older spelling of a name of today: arguments that this one has more came later."""
    return got[: len(wanted)] if fact.name in api.dropped() and fact.canonical in api.names() else got


def shown(signature: inspect.Signature) -> list[tuple[str, str, str]]:
    """Names, kinds and defaults; types and unwritten defaults by their kind alone."""
    return [
        (p.name, p.kind.name, "" if p.default is p.empty else _default(p.default))
        for p in signature.parameters.values()
    ]


def _default(value: Any) -> str:
    if isinstance(value, api.Unwritten) or callable(value) or type(value) is object:
        return "<object>"
    return repr(tuple(value) if isinstance(value, tuple) else value)  # the facts have named tuples as plain ones


@pytest.mark.parametrize("fact", [f for f in HERE if f.kind in ("constant", "dtype", "message", "enum")], ids=str)
def test_constants_have_the_values_of_tensorflow(fact: api.Fact) -> None:
    value = names.find(fact.name)
    match fact.kind:
        case "dtype":
            assert value.enum == fact.detail["value"]
        case "message":
            assert "tensorflow." + value.DESCRIPTOR.full_name.removeprefix("graphmill.") == fact.detail["message"]
        case "enum":
            assert {member.name for member in value} == set(fact.detail["members"])
        case _:
            if "value" in fact.detail and fact.canonical not in coverage.OTHER_VALUES:
                assert value == fact.detail["value"]


def test_rows_stand_under_canonical_names() -> None:
    wrong = [name for name in names.table() if (fact := api.fact(name)) is not None and fact.canonical != name]
    assert not wrong, "rows under another name than the canonical one: " + " ".join(wrong)


def test_every_row_leads_somewhere() -> None:
    for name, (module, attribute) in names.table().items():
        assert hasattr(importlib.import_module(module), attribute), f"{name}: {module} has no {attribute}"


def test_every_table_is_listed() -> None:
    from pathlib import Path

    import toolkit.tensorflow.tables as tables

    there = {path.stem for path in Path(tables.__file__ or "").parent.glob("*.py")}
    assert there - {"__init__", "missing", "spellings"} == set(FAMILIES)


def test_as_many_names_as_architecture_says() -> None:
    assert len(api.names()) - len(coverage.absent(api.names())) >= coverage.promised()


def test_a_name_that_is_not_there_is_one_line() -> None:
    with pytest.raises(AttributeError) as error:
        _ = tf.reduce_meen
    assert str(error.value) == "there is no tf.reduce_meen; did you mean 'tf.reduce_mean' or 'tf.reduce_min'?" or (
        "tf.reduce_mean" in str(error.value) and "\n" not in str(error.value)
    )


def test_a_name_of_tensorflow_that_is_not_here_says_so() -> None:
    with pytest.raises(AttributeError, match=r"tf\.keras\.layers is not here: Keras"):
        _ = tf.keras.layers


def test_deprecated_names_warn_once(caplog: pytest.LogCaptureFixture) -> None:
    from toolkit.tensorflow import deprecation

    deprecation.forget()
    names.resolve("mul")
    names.resolve("mul")
    assert [record.getMessage() for record in caplog.records] == [
        "The name tf.mul is deprecated in TensorFlow 1; write tf.math.multiply"
    ]


def test_what_nothing_stands_in_for_is_not_told_to_be_deprecated(caplog: pytest.LogCaptureFixture) -> None:
    from toolkit.tensorflow import deprecation

    deprecation.forget()
    names.resolve("train.Server")
    assert not caplog.records


def test_arguments_of_before_1_0_are_told() -> None:
    with pytest.raises(TypeError, match=r"write tf\.concat\(values, axis\)"):
        tf.concat(1, [[1.0], [2.0]])
    with pytest.raises(TypeError, match=r"write tf\.split\(value, count, axis\)"):
        tf.split(0, 2, [1.0, 2.0])
    assert tf.nn.seq2seq.rnn_decoder is tf.contrib.legacy_seq2seq.rnn_decoder
    assert tf.listdiff is tf.setdiff1d
