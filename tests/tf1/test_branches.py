"""Branches that write variables."""

from __future__ import annotations

import pytest

from toolkit import tensorflow as tf


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_assigns_what_the_other_only_reads(taken: bool, use_resource: bool) -> None:
    with tf.Graph().as_default():
        variable = tf.get_variable("v", initializer=1.0, use_resource=use_resource)
        chosen = tf.placeholder(tf.bool, [])
        value = tf.cond(chosen, lambda: tf.identity(tf.assign(variable, 5.0)), lambda: variable + 1.0)
        plain = tf.cond(chosen, lambda: tf.assign(variable, 5.0), lambda: variable + 1.0)
        with tf.Session() as session:
            for fetched in (value, plain):
                session.run(variable.initializer)
                assert session.run(fetched, {chosen: taken}) == (5.0 if taken else 2.0)
                assert session.run(variable) == (5.0 if taken else 1.0)
