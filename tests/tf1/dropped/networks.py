"""tf.contrib.slim.nets: variables and end points of all networks, values of small ones.

Whole networks are made in a graph of their own, where nothing is run: they are too large to be.
"""

# in 1.15, the networks have to be imported
_SLIM = "import importlib, zlib\nslim = tf.contrib.slim\nnets = slim.nets if hasattr(slim, 'nets') else importlib.import_module('tensorflow.contrib.slim.nets')\n"
#: what a network has: its variables by name and shape, how many regularizers, end points and their shapes
_OUTLINE = """with tf.Graph().as_default():
  with slim.arg_scope({scope}):
    net, ends = {call}
  names = [v.op.name + str(v.get_shape().as_list()) for v in tf.global_variables()]
  result = [len(names), zlib.crc32('\\n'.join(sorted(names)).encode()), names[0], names[-1], len(tf.losses.get_regularization_losses()),
            str(sorted((key, value.get_shape().as_list()) for key, value in ends.items())), str(net.get_shape().as_list()), len(tf.get_collection('moving_vars'))]
"""
_IMAGES = "x = tf.constant(np.random.RandomState(1).uniform(-1., 1., [{}]).astype('f'))\n"


def _outline(scope: str, *calls: str) -> list[str]:
    return [_SLIM + _OUTLINE.format(scope=scope, call=call) for call in calls]


def _values(sizes: str, scope: str, *calls: str) -> list[str]:
    return [
        f"{_SLIM}{_IMAGES.format(sizes)}with slim.arg_scope({scope}):\n  net, ends = {call}\nresult = [tf.reduce_mean(net, [1, 2]), net[0, 0, 0], str(sorted(ends))]"
        for call in calls
    ]


def _plain(name: str, size: int, module: str) -> list[str]:
    scope = f"nets.{module}.{module}_arg_scope()" if module != "alexnet" else "nets.alexnet.alexnet_v2_arg_scope()"
    return _outline(
        scope,
        f"nets.{module}.{name}(tf.zeros([2, {size}, {size}, 3]))",
        f"nets.{module}.{name}(tf.placeholder(tf.float32, [None, {size}, {size}, 3]), 10, False, spatial_squeeze=False, scope='s')",
    )


def _resnets(version: int) -> dict[str, list[str]]:
    module, scope = f"nets.resnet_v{version}", "nets.resnet_utils.resnet_arg_scope()"
    block = f"{module}.resnet_v{version}_block"
    image = "tf.zeros([2, 64, 64, 3])"
    found = {
        f"contrib.slim.nets.resnet_v{version}.resnet_v{version}_{layers}": _outline(
            scope,
            f"{module}.resnet_v{version}_{layers}({image}, {rest})",
            f"{module}.resnet_v{version}_{layers}({image}, output_stride=8, global_pool=False, scope='s')",
        )
        for layers, rest in ((50, "10"),)
    }
    found[f"contrib.slim.nets.resnet_v{version}.resnet_v{version}"] = _values(
        "4, 32, 32, 3",
        scope,
        f"{module}.resnet_v{version}(x, [{block}('one', 2, 2, 2), {block}('two', 4, 2, 1)], 5, scope='r')",
        f"{module}.resnet_v{version}(x, [{block}('one', 2, 2, 2), {block}('two', 4, 2, 2)], output_stride=2, include_root_block=False, global_pool=False)",
    )
    found[f"contrib.slim.nets.resnet_v{version}.resnet_v{version}_block"] = [
        f"{_SLIM}block = {block}('a', 8, {count}, 2)\nresult = [block.scope, len(block.args), block.args[-1]['stride'], block.args[0]['depth']]"
        for count in (1, 3)
    ]
    found[f"contrib.slim.nets.resnet_v{version}.bottleneck"] = [
        f"{_SLIM}{_IMAGES.format('2, 6, 6, 4')}with slim.arg_scope({scope}):\n  result = {module}.bottleneck(x, {each})"
        for each in ("8, 2, 2", "4, 2, 1, rate=2, scope='b'")
    ]
    return found


def _inception(version: int, sizes: str, small: str, last: str, aux: str) -> dict[str, list[str]]:
    name = f"inception_v{version}"
    scope = f"nets.inception.{name}_arg_scope()"
    side = 299 if version == 3 else 224
    return {
        f"contrib.slim.nets.inception.{name}": _outline(
            scope,
            f"nets.inception.{name}(tf.zeros([2, {side}, {side}, 3]))",
            f"nets.inception.{name}(tf.zeros([2, {side}, {side}, 3]), 5, False, spatial_squeeze=False{aux})",
        ),
        f"contrib.slim.nets.inception.{name}_base": _values(
            sizes,
            scope,
            f"nets.inception.{name}_base(x, '{last}'{small})",
            f"nets.inception.{name}_base(x, 'MaxPool_3a_3x3'{small}, scope='s')",
        ),
        f"contrib.slim.nets.inception.{name}_arg_scope": [
            f"{_SLIM}sc = nets.inception.{name}_arg_scope({each})\ngiven = sc[slim.arg_scope_func_key(slim.conv2d)]\nresult = str(sorted(given))"
            for each in ("", "0.1")
        ],
    }


_UTILS = f"{_SLIM}{_IMAGES.format('2, 7, 7, 3')}"
VALUES: dict[str, list[str]] = {
    "contrib.slim.nets.alexnet.alexnet_v2": _plain("alexnet_v2", 224, "alexnet"),
    "contrib.slim.nets.overfeat.overfeat": _plain("overfeat", 231, "overfeat"),
    **{f"contrib.slim.nets.vgg.{name}": _plain(name, 224, "vgg") for name in ("vgg_a", "vgg_d", "vgg_e")},
    **{f"contrib.slim.nets.{module}.{name}_arg_scope": [f"{_SLIM}sc = nets.{module}.{name}_arg_scope({each})\nresult = str(sorted(sorted(v) for v in sc.values()))" for each in ("", "0.1")]
       for module, name in (("alexnet", "alexnet_v2"), ("overfeat", "overfeat"), ("vgg", "vgg"))},
    **{f"contrib.slim.nets.{module}.trunc_normal": [f"{_SLIM}result = tf.shape(nets.{module}.trunc_normal(0.1)([2, 3], dtype=tf.float32))", f"{_SLIM}result = tf.reduce_all(tf.abs(nets.{module}.trunc_normal(0.1)([50], dtype=tf.float32)) < 0.2)"] for module in ("alexnet", "overfeat")},
    **_resnets(1), **_resnets(2),
    "contrib.slim.nets.resnet_utils.resnet_arg_scope": [f"{_SLIM}sc = nets.resnet_utils.resnet_arg_scope({each})\nresult = str(sorted(sorted(v) for v in sc.values()))" for each in ("", "0.1, batch_norm_scale=False")],
    "contrib.slim.nets.resnet_utils.subsample": [f"{_UTILS}result = nets.resnet_utils.subsample(x, {each})" for each in ("1", "2", "3, 's'")],
    "contrib.slim.nets.resnet_utils.conv2d_same": [f"{_UTILS}result = nets.resnet_utils.conv2d_same(x, 2, 3, {each})" for each in ("1", "2", "2, rate=1, scope='s'", "1, 2")],
    "contrib.slim.nets.resnet_utils.stack_blocks_dense": [
        f"{_UTILS}unit = lambda net, stride, rate: slim.conv2d(net, 2, 3, stride=stride, rate=rate)\nblocks = [nets.resnet_utils.Block('b', unit, [{{'stride': 2}}, {{'stride': 1}}])]\nresult = nets.resnet_utils.stack_blocks_dense(x, blocks{each})"
        for each in ("", ", 1", ", 2")
    ],
    **_inception(1, "2, 64, 64, 3", "", "Mixed_3c", ""),
    **_inception(2, "2, 64, 64, 3", ", depth_multiplier=0.3", "Mixed_4b", ", depth_multiplier=0.5"),
    **_inception(3, "2, 96, 96, 3", ", min_depth=4, depth_multiplier=0.1", "Mixed_6b", ", min_depth=8, depth_multiplier=0.5"),
}  # fmt: skip
