"""Options of programs hold what absl's flags hold for the same command lines, and say what is wrong with them."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from toolkit.tensorflow.families.platform import flags, services


def _define(module: Any) -> Any:
    values = module.FlagValues()
    module.DEFINE_integer("steps", 25, "how many", lower_bound=1, upper_bound=99, flag_values=values)
    module.DEFINE_float("rate", 1, "how fast", flag_values=values)
    module.DEFINE_string("data", None, "where", flag_values=values)
    module.DEFINE_boolean("train", False, "whether", flag_values=values)
    module.DEFINE_integer("batch", "2", "texts as defaults", flag_values=values)
    module.DEFINE_float("decay", "1e-4", "are read", flag_values=values)
    module.DEFINE_boolean("debug", "False", "as well", flag_values=values)
    module.DEFINE_list("layers", "a,b", "which", flag_values=values)
    module.DEFINE_enum("kind", "old", ["old", "new"], "what", flag_values=values)
    module.DEFINE_multi_string("tag", "x", "called", flag_values=values)
    module.DEFINE_multi_integer("size", [1, 2], "how large", flag_values=values)
    module.DEFINE_multi_float("share", None, "how much", flag_values=values)
    module.DEFINE_multi_enum("sort", ["old"], ["old", "new"], "what", flag_values=values)
    module.mark_flag_as_required("data", flag_values=values)
    return values


@pytest.mark.parametrize(
    "given",
    [
        ["--data=here"],
        ["--data", "here", "--steps=3", "--train", "left", "--rate=2"],
        ["--data=here", "--notrain", "--tag=a", "--tag=b", "--size=7", "--share=.5", "--sort=new", "--sort=old"],
        ["--data=here", "--layers=c", "--kind=new", "--train=true"],
    ],
)
def test_values_are_those_of_absl(given: list[str]) -> None:
    theirs = _define(pytest.importorskip("absl.flags"))
    ours = _define(flags)
    assert ours(["program", *given]) == theirs(["program", *given])
    values = ours.flag_values_dict()
    assert values == {name: theirs[name].value for name in values}
    assert type(values["rate"]) is float


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "flag --data is required and was not given"),
        (["--data=x", "--steps=0"], "flag --steps=0: expected at least 1"),
        (["--data=x", "--steps=100"], "flag --steps=100: expected at most 99"),
        (["--data=x", "--steps=many"], "flag --steps=many: expected int"),
        (["--data=x", "--kind=other"], "flag --kind=other: expected one of old, new"),
        (["--data=x", "--sort=other"], "flag --sort=other: expected one of old, new"),
        (["--data=x", "--other=1"], "Unknown command line flag 'other'"),
    ],
)
def test_mistakes(given: list[str], said: str) -> None:
    with pytest.raises(flags.FlagError, match=said):
        _define(flags)(["program", *given])


def test_a_default_that_does_not_fit() -> None:
    with pytest.raises(flags.FlagError, match="--batch=many: expected int"):
        flags.DEFINE_integer("batch", "many", flag_values=flags.FlagValues())


def test_a_program_ends_with_a_line_about_its_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "FLAGS", _define(flags))
    with pytest.raises(SystemExit, match=r"^train\.py: flag --data is required .* \(--help lists all flags\)$"):
        services.run(lambda _: 0, ["train.py"])
    with pytest.raises(SystemExit) as ended:
        services.run(len, ["train.py", "--data=x", "more"])
    assert ended.value.code == 2  # what `main` made of the name and the word that is left


def test_the_table_of_all_flags_as_programs_print_it() -> None:
    values = _define(flags)
    values([sys.argv[0], "--data=x", "--steps=3"])
    table = getattr(values, "__flags")
    assert set(table) == set(values)
    assert table["steps"].value == 3


def test_a_program_may_keep_what_it_found_among_its_flags() -> None:
    values = _define(flags)
    values([sys.argv[0], "--data=x"])
    values.words_found = 7
    values.words_found += 1
    assert values.words_found == 8 and "words_found" in values
    assert values.flag_values_dict()["words_found"] == 8
    with pytest.raises(AttributeError, match=r"^unknown$"):
        values.unknown  # noqa: B018


def test_other_names_that_python_asks_for_are_no_flags() -> None:
    assert not hasattr(flags.FlagValues(), "__wrapped__")


def test_tests_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tf.flags._FlagValues()`, in place of which releases after 1.4 have nothing."""
    from toolkit import tensorflow as tf

    monkeypatch.setattr(flags, "FLAGS", flags.FLAGS)
    state = dict(vars(flags.FLAGS))
    try:
        for value in ("a", "b"):
            tf.app.flags.FLAGS = tf.app.flags._FlagValues()
            tf.flags.DEFINE_string("folder_of_a_test", value, "which would be defined twice")
            tf.flags.FLAGS.mark_as_parsed()
            assert tf.flags.FLAGS.flag_values_dict() == {"folder_of_a_test": value}
    finally:
        vars(flags.FLAGS).update(state)
