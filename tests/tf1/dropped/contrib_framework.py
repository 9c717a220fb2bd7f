"""tf.contrib.framework."""

_SCOPED = "@tf.contrib.framework.add_arg_scope\ndef twice(x, factor=2., name=None):\n  return tf.multiply(x, factor, name=name)\n"
_THREE = "for n in ('a', 'b/w', 'b/v'):\n  tf.contrib.framework.model_variable(n, [2])\n"
_NAMES = "[v.name for v in {}]"
_NEST = "{'a': [1, (2, 3)], 'b': 4}"


def _framework(name: str, *arguments: str) -> list[str]:
    return [f"result = str(tf.contrib.framework.{name}({each}))" for each in arguments]


def _found(name: str, *arguments: str) -> list[str]:
    return [f"{_THREE}result = str([v.name for v in tf.contrib.framework.{name}({each})])" for each in arguments]


CALLS: dict[str, list[str]] = {
    "contrib.framework.add_arg_scope": [
        f"{_SCOPED}twice(f(2))\nwith tf.contrib.framework.arg_scope([twice], factor=3.):\n  twice(f(2))\n  twice(f(2), factor=4.)",
        f"{_SCOPED}with tf.contrib.framework.arg_scope([twice], name='n'):\n  twice(f(2))\n  twice(f(2), name='m')",
    ],
    "contrib.framework.arg_scope": [
        f"{_SCOPED}with tf.contrib.framework.arg_scope([twice], factor=3.):\n  with tf.contrib.framework.arg_scope([twice], name='n') as sc:\n    pass\ntwice(f(2))\nwith tf.contrib.framework.arg_scope(sc):\n  twice(f(2))",
        f"{_SCOPED}with tf.contrib.framework.arg_scope([twice], factor=3.):\n  with tf.contrib.framework.arg_scope([twice], factor=5.):\n    twice(f(2))\n  with tf.contrib.framework.arg_scope({{}}):\n    twice(f(2))",
    ],
    "contrib.framework.variable": [
        "tf.contrib.framework.variable('v', [2, 3], initializer=tf.zeros_initializer(), device='/cpu:0')",
        "with tf.variable_scope('a', reuse=tf.AUTO_REUSE):\n  for _ in range(2):\n    tf.contrib.framework.variable('v', initializer=[1., 2.], regularizer=lambda w: tf.nn.l2_loss(w), trainable=False)",
    ],
    "contrib.framework.model_variable": [
        "tf.contrib.framework.model_variable('v', [2, 3])",
        "def getter(getter, name, *args, **kwargs):\n  return getter(name + '_1', *args, **kwargs)\nwith tf.variable_scope('a', custom_getter=getter):\n  tf.contrib.framework.model_variable('v', [2], initializer=tf.ones_initializer())",
    ],
    "contrib.framework.local_variable": ["tf.contrib.framework.local_variable([1., 2.])\ntf.local_variables_initializer()", "tf.contrib.framework.local_variable(3, name='n', use_resource=True)"],
    "contrib.framework.global_variable": ["tf.contrib.framework.global_variable([1., 2.])\ntf.global_variables_initializer()", "tf.contrib.framework.global_variable(3, name='n')"],
    "contrib.framework.assign_from_values": [
        "tf.get_variable('a', [2, 3])\ntf.contrib.framework.assign_from_values({'a': np.ones([3, 2], 'f')})",
        "tf.get_variable('ab', [2])\ntf.get_variable('a', [2])\ntf.contrib.framework.assign_from_values({'a': np.ones([2], 'f')})",
    ],
    "contrib.framework.reduce_sum_n": ["tf.contrib.framework.reduce_sum_n([f(2), f(3)])", "tf.contrib.framework.reduce_sum_n([f(2)], 'n')"],
    "contrib.framework.remove_squeezable_dimensions": [
        "tf.contrib.framework.remove_squeezable_dimensions(f(2, 1), f(2))", "tf.contrib.framework.remove_squeezable_dimensions(f(2), f(2, 1))",
        "tf.contrib.framework.remove_squeezable_dimensions(tf.placeholder(tf.float32), f(2), 'n')",
    ],
    "contrib.framework.with_shape": ["tf.contrib.framework.with_shape([2, 3], f(2, 3))", "tf.contrib.framework.with_shape([2, 3], f(None, 3))",
                                     "tf.contrib.framework.with_shape([], f(1))", "tf.contrib.framework.with_shape(i(2), f(2, 3))"],
    "contrib.framework.with_same_shape": ["tf.contrib.framework.with_same_shape(f(2, 3), f(2, 3))", "tf.contrib.framework.with_same_shape(f(2, 3), f(None, 3))",
                                          "tf.contrib.framework.with_same_shape(f(None, 3), f(2, 3))"],
    "contrib.framework.assert_scalar_int": ["tf.contrib.framework.assert_scalar_int(i())", "tf.contrib.framework.assert_scalar_int(3, 'n')"],
    "contrib.framework.get_global_step": ["tf.contrib.framework.get_global_step()", "tf.train.create_global_step()\ntf.contrib.framework.get_global_step() + 1"],
    "contrib.framework.create_global_step": ["tf.contrib.framework.create_global_step()", "tf.contrib.framework.create_global_step(tf.get_default_graph())"],
    "contrib.framework.get_or_create_global_step": ["tf.contrib.framework.get_or_create_global_step()\ntf.contrib.framework.get_or_create_global_step()",
                                                    "tf.train.create_global_step()\ntf.contrib.framework.get_or_create_global_step()"],
    "contrib.framework.assert_or_get_global_step": ["tf.train.create_global_step()\ntf.contrib.framework.assert_or_get_global_step() + 1",
                                                    "tf.contrib.framework.assert_or_get_global_step(global_step_tensor=l()) + 1"],
    "contrib.framework.assert_global_step": ["tf.contrib.framework.assert_global_step(l())", "tf.contrib.framework.assert_global_step(i())"],
    "contrib.framework.smart_cond": ["tf.contrib.framework.smart_cond(True, lambda: f(2), lambda: f(3))", "tf.contrib.framework.smart_cond(tf.constant(False), lambda: f(2), lambda: f(3))",
                                     "tf.contrib.framework.smart_cond(b(), lambda: tf.constant(1), lambda: tf.constant(2), 'n')"],
    "contrib.framework.smart_case": ["tf.contrib.framework.smart_case([(True, lambda: f(2)), (b(), lambda: f(3))])",
                                     "tf.contrib.framework.smart_case([(False, lambda: tf.constant(0)), (b(), lambda: tf.constant(1))], lambda: tf.constant(2))"],
}  # fmt: skip

VALUES: dict[str, list[str]] = {
    "contrib.framework.get_variables": _found("get_variables", "", "'b'", "suffix='w'", "tf.get_variable_scope()"),
    "contrib.framework.get_model_variables": _found("get_model_variables", "", "'b', 'v'"),
    "contrib.framework.get_local_variables": _found("get_local_variables", "", "'b'"),
    "contrib.framework.get_trainable_variables": _found("get_trainable_variables", "'a'", "suffix='v:0'"),
    "contrib.framework.get_variables_by_suffix": _found("get_variables_by_suffix", "'w'", "'v', 'b'"),
    "contrib.framework.get_variables_by_name": _found("get_variables_by_name", "'w'", "'a'"),
    "contrib.framework.get_variables_to_restore": _found("get_variables_to_restore", "", "['a', 'b/w']", "exclude=['b']", "['b'], ['b/v']"),
    "contrib.framework.filter_variables": _found("filter_variables", "tf.global_variables(), ['w']", "tf.global_variables(), None, ['w', 'a']", "tf.global_variables(), ['w'], reg_search=False"),
    "contrib.framework.get_unique_variable": [f"{_THREE}result = tf.contrib.framework.get_unique_variable('{name}').name" for name in ("a", "b/w")],
    "contrib.framework.get_variable_full_name": [
        f"{_THREE}result = tf.contrib.framework.get_variable_full_name(tf.global_variables()[1])",
        "v = tf.get_variable('p', [4], partitioner=tf.fixed_size_partitioner(2))\nresult = [tf.contrib.framework.get_variable_full_name(each) for each in v]",
    ],
    "contrib.framework.add_model_variable": ["v = tf.get_variable('v', [2])\nfor _ in range(2):\n  tf.contrib.framework.add_model_variable(v)\nresult = len(tf.model_variables())",
                                             f"{_THREE}tf.contrib.framework.add_model_variable(tf.global_variables()[0])\nresult = len(tf.model_variables())"],
    "contrib.framework.has_arg_scope": [f"{_SCOPED}result = tf.contrib.framework.has_arg_scope(twice)", "result = tf.contrib.framework.has_arg_scope(tf.reduce_sum)"],
    "contrib.framework.arg_scoped_arguments": [f"{_SCOPED}result = str(tf.contrib.framework.arg_scoped_arguments(twice))", "@tf.contrib.framework.add_arg_scope\ndef plain(x, y):\n  return x\nresult = str(tf.contrib.framework.arg_scoped_arguments(plain))"],
    "contrib.framework.current_arg_scope": ["result = len(tf.contrib.framework.current_arg_scope())", f"{_SCOPED}with tf.contrib.framework.arg_scope([twice], factor=3.):\n  result = str(list(tf.contrib.framework.current_arg_scope().values()))"],
    "contrib.slim.arg_scope_func_key": [f"{_SCOPED}with tf.contrib.framework.arg_scope([twice], factor=3.):\n  result = tf.contrib.framework.current_arg_scope()[tf.contrib.slim.arg_scope_func_key(twice)]['factor']",
                                        "result = tf.contrib.slim.arg_scope_func_key(3)"],
    "contrib.framework.get_name_scope": ["result = tf.contrib.framework.get_name_scope()", "with tf.name_scope('a'), tf.name_scope('b'):\n  result = tf.contrib.framework.get_name_scope()"],
    "contrib.framework.get_placeholders": ["x, y = f(2), i()\nz = x + 1\nresult = [p.name for p in tf.contrib.framework.get_placeholders(tf.get_default_graph())]",
                                           "result = len(tf.contrib.framework.get_placeholders(tf.Graph()))"],
    "contrib.framework.get_graph_from_inputs": ["result = tf.contrib.framework.get_graph_from_inputs([f(2)]) is tf.get_default_graph()",
                                                "g = tf.Graph()\nresult = tf.contrib.framework.get_graph_from_inputs([], g) is g"],
    "contrib.framework.prepend_name_scope": _framework("prepend_name_scope", "'a/b', 'c'", "'^a', 'c/'", "'loc:@a', 'c'", "'a', None"),
    "contrib.framework.strip_name_scope": _framework("strip_name_scope", "'c/a/b', 'c'", "'^c/a', 'c/'", "'loc:@c/a', 'c'", "'a', 'c'"),
    "contrib.framework.smart_constant_value": _framework("smart_constant_value", "True", "0", "tf.constant(True)", "b()"),
    "contrib.framework.deprecated": ["@tf.contrib.framework.deprecated('2019-01-01', 'Write g.')\ndef f(x):\n  return x + 1\nresult = f(2)",
                                     "@tf.contrib.framework.deprecated(None, 'Write g.', warn_once=False)\ndef f(x):\n  return x + 1\nresult = f(x=2)"],
    "contrib.framework.deprecated_args": ["@tf.contrib.framework.deprecated_args('2019-01-01', 'Use y.', 'x')\ndef f(x=1, y=2):\n  return x + y\nresult = f(x=2), f(y=3)",
                                          "@tf.contrib.framework.deprecated_args(None, 'Use y.', ('x', None), warn_once=False)\ndef f(x=None, y=2):\n  return y\nresult = f(x=2)"],
    "contrib.framework.deprecated_arg_values": ["@tf.contrib.framework.deprecated_arg_values('2019-01-01', 'Use y.', x=1)\ndef f(x=1, y=2):\n  return x + y\nresult = f(x=1), f(x=2)",
                                                "@tf.contrib.framework.deprecated_arg_values(None, 'Use y.', warn_once=False, x=True)\ndef f(x=1):\n  return x\nresult = f(3)"],
    "contrib.framework.assign_from_values_fn": [
        "v = tf.get_variable('v', [2, 2])\nset_v = tf.contrib.framework.assign_from_values_fn({'v': np.arange(4.)})\nwith tf.Session() as sess:\n  set_v(sess)\n  result = sess.run(v)",
        "v = tf.get_variable('v', [1])\nset_v = tf.contrib.framework.assign_from_values_fn({'v': np.ones([1])})\nwith tf.Session() as sess:\n  set_v(sess)\n  result = sess.run(v * 2.)",
    ],
    "contrib.framework.nest.is_sequence": _framework("nest.is_sequence", "[1]", "'a'", "{}"),
    "contrib.framework.nest.is_sequence_or_composite": _framework("nest.is_sequence_or_composite", "1", "tf.SparseTensor([[0]], [1], [2])"),
    "contrib.framework.nest.assert_shallow_structure": _framework("nest.assert_shallow_structure", "[1, 2], [[3], 4]", "(1, 2), [3, 4], check_types=False"),
    "contrib.framework.nest.flatten_dict_items": _framework("nest.flatten_dict_items", "{(1, 2): (3, 4), 5: 6}", "{'a': 1}"),
    "contrib.framework.nest.flatten_up_to": _framework("nest.flatten_up_to", f"{{'a': 0, 'b': 0}}, {_NEST}", "0, [1, 2]"),
    "contrib.framework.nest.flatten_with_joined_string_paths": _framework("nest.flatten_with_joined_string_paths", _NEST, f"{_NEST}, '.'"),
    "contrib.framework.nest.flatten_with_tuple_paths": _framework("nest.flatten_with_tuple_paths", _NEST, "3"),
    "contrib.framework.nest.flatten_with_tuple_paths_up_to": _framework("nest.flatten_with_tuple_paths_up_to", f"{{'a': 0, 'b': 0}}, {_NEST}", f"{{'a': [0, 0], 'b': 0}}, {_NEST}"),
    "contrib.framework.nest.get_traverse_shallow_structure": _framework("nest.get_traverse_shallow_structure", f"lambda s: isinstance(s, dict), {_NEST}", f"lambda s: True, {_NEST}"),
    "contrib.framework.nest.map_structure_up_to": _framework("nest.map_structure_up_to", f"{{'a': 0, 'b': 0}}, str, {_NEST}", "[0, 0], lambda x, y: (x, y), [1, [2]], [3, 4]"),
    "contrib.framework.nest.map_structure_with_paths": _framework("nest.map_structure_with_paths", f"lambda p, x: (p, x), {_NEST}", "lambda p, x, y: p + str(x + y), [1, 2], [3, 4]"),
    "contrib.framework.nest.map_structure_with_tuple_paths": _framework("nest.map_structure_with_tuple_paths", f"lambda p, x: (p, x), {_NEST}", "lambda p, x, y: x + y, [1, 2], [3, 4]"),
    "contrib.framework.nest.map_structure_with_tuple_paths_up_to": _framework("nest.map_structure_with_tuple_paths_up_to", f"{{'a': 0, 'b': 0}}, lambda p, x: (p, x), {_NEST}", "[0, 0], lambda p, x: x, [[1], 2]"),
    "contrib.framework.nest.yield_flat_paths": [f"result = str(list(tf.contrib.framework.nest.yield_flat_paths({each})))" for each in (_NEST, "3")],
    "contrib.framework.assign_from_checkpoint": [
        "import tempfile\nv = tf.get_variable('v', [2])\nsaver = tf.train.Saver()\nwith tf.Session() as sess:\n  sess.run(v.assign([3., 4.]))\n  path = saver.save(sess, tempfile.mkdtemp() + '/m')\n"
        f"op, feeds = tf.contrib.framework.assign_from_checkpoint(path, {which})\nwith tf.Session() as sess:\n  sess.run(op, feeds)\n  result = sess.run(v)"
        for which in ("[v]", "{'v': v}, ignore_missing_vars=True")
    ],
    "contrib.framework.assign_from_checkpoint_fn": [
        "import tempfile\nv = tf.get_variable('v', [2])\nsaver = tf.train.Saver()\nwith tf.Session() as sess:\n  sess.run(v.assign([3., 4.]))\n  path = saver.save(sess, tempfile.mkdtemp() + '/m')\n"
        f"w = tf.get_variable('w', [2])\nset_v = tf.contrib.framework.assign_from_checkpoint_fn(path, {which})\nwith tf.Session() as sess:\n  set_v(sess)\n  result = sess.run(v)"
        for which in ("[v]", "[v, w], ignore_missing_vars=True")
    ],
    **{f"contrib.framework.{name}": [
        "import os, tempfile\nv = tf.get_variable('v', [2])\nsaver = tf.train.Saver()\nfolder = tempfile.mkdtemp()\nwith tf.Session() as sess:\n  sess.run(v.assign([3., 4.]))\n  path = saver.save(sess, folder + '/m')\n"
        f"result = {call}" for call in calls]
       for name, calls in {
           "load_checkpoint": ["tf.contrib.framework.load_checkpoint(path).get_tensor('v')", "tf.contrib.framework.load_checkpoint(folder).has_tensor('w')"],
           "load_variable": ["tf.contrib.framework.load_variable(folder, 'v')", "tf.contrib.framework.load_variable(path, 'v:0')"],
           "list_variables": ["str(tf.contrib.framework.list_variables(path))", "len(tf.contrib.framework.list_variables(folder))"],
       }.items()},
}  # fmt: skip

DIFFERING: dict[str, str] = dict.fromkeys(
    [*CALLS["contrib.framework.with_shape"][1::2], *CALLS["contrib.framework.with_same_shape"][1:]],
    "what the assertion says is in our own words",
)
