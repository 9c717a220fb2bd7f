"""Hyperparameters: what overrides them, and one line for what does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from toolkit.client.hyperparameters import HParams, parse_values
from toolkit.client.mode_keys import ModeKeys


def made() -> HParams:
    return HParams(steps=1, rate=0.5, name="x", sizes=[1, 2], dry=True)


def test_texts_json_and_dictionaries_override() -> None:
    values = made().parse("steps=3, rate=2,name=hello,sizes=[4,5,6],dry=false").values()
    assert values == {"steps": 3, "rate": 2.0, "name": "hello", "sizes": [4, 5, 6], "dry": False}
    assert made().parse("sizes[1]=9").sizes == [1, 9]
    assert made().parse_json('{"steps": 5}').steps == 5
    assert made().override_from_dict({"rate": 3}).rate == 3.0
    assert HParams(**json.loads(made().to_json())).values() == made().values()


def test_what_is_there() -> None:
    found = made()
    assert "steps" in found and "other" not in found
    assert found.get("steps") == 1 and found.get("other", 3) == 3
    found.del_hparam("steps")
    assert list(found.values()) == ["rate", "name", "sizes", "dry"]
    assert str(found) == "rate=0.5,name=x,sizes=[1, 2],dry=True"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.parse("other=1"), "there is no hyperparameter 'other'"),
        (lambda h: h.parse("steps=1.5"), "steps: expected a value of type int, got '1.5'"),
        (lambda h: h.parse("steps"), "expected NAME=VALUE, .* got 'steps'"),
        (lambda h: h.parse("steps=1,steps=2"), "steps is given twice"),
        (lambda h: h.parse("steps=[1,2]"), "steps is one value, not a list"),
        (lambda h: h.parse("sizes=3"), "sizes is a list, not one value"),
        (lambda h: h.parse("sizes[7]=3"), "there is no index 7"),
        (lambda h: h.parse("dry=perhaps"), "dry: expected a value of type bool"),
        (lambda h: h.set_hparam("steps", 2.5), "steps: expected a value of type int, got 2.5"),
        (lambda h: h.set_hparam("dry", 1), "dry: expected a value of type bool, got 1"),
        (lambda h: h.add_hparam("steps", 1), "there is something called 'steps' already"),
        (lambda h: h.add_hparam("none", []), "none: a list needs a value"),
        (lambda h: ModeKeys.validate("test"), "mode: there is no 'test'"),
    ],
)
def test_what_does_not_fit_is_one_line(change: Callable[[HParams], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        change(made())
    assert "\n" not in str(caught.value)


def test_unknown_names_may_be_left_out() -> None:
    assert parse_values("a=1,b=2", {"a": int}, ignore_unknown=True) == {"a": 1}
