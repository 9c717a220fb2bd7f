"""tf.contrib.image."""

CALLS: dict[str, list[str]] = {
    "contrib.image.rotate": [
        "tf.contrib.image.rotate(f(2, 5, 4, 3), 0.5)",
        "tf.contrib.image.rotate(tf.placeholder(tf.uint8, [5, 4]), 0.5, 'BILINEAR', name='turn')",
        "tf.contrib.image.rotate(tf.placeholder(tf.float32, [None, None, None, 3]), f(2), 'bilinear')",
    ],
    "contrib.image.translate": [
        "tf.contrib.image.translate(f(2, 5, 4, 3), [1, -2])",
        "tf.contrib.image.translate(f(5, 4, 3), f(1, 2), 'BILINEAR', name='move')",
    ],
    "contrib.image.transform": [
        "tf.contrib.image.transform(f(2, 5, 4, 3), [1, 0, 1, 0, 1, 1, 0, 0])",
        "tf.contrib.image.transform(f(5, 4), f(1, 8), 'bilinear', output_shape=[3, 3], name='t')",
    ],
    "contrib.image.angles_to_projective_transforms": [
        "tf.contrib.image.angles_to_projective_transforms(0.5, 3.0, 4.0)",
        "tf.contrib.image.angles_to_projective_transforms(f(3), f(1), f(1), name='a')",
    ],
    "contrib.image.translations_to_projective_transforms": [
        "tf.contrib.image.translations_to_projective_transforms([1.0, 2.0])",
        "tf.contrib.image.translations_to_projective_transforms(f(3, 2), name='a')",
    ],
    "contrib.image.compose_transforms": [
        "tf.contrib.image.compose_transforms(f(8), f(8))",
        "tf.contrib.image.compose_transforms(f(3, 8), f(3, 8), f(3, 8))",
    ],
    "contrib.image.flat_transforms_to_matrices": [
        "tf.contrib.image.flat_transforms_to_matrices(f(8))", "tf.contrib.image.flat_transforms_to_matrices(f(2, 8))",
    ],
    "contrib.image.matrices_to_flat_transforms": [
        "tf.contrib.image.matrices_to_flat_transforms(f(3, 3))",
        "tf.contrib.image.matrices_to_flat_transforms(f(2, 3, 3))",
    ],
}  # fmt: skip
#: 1.15's zeros and ones of a size that is computed ask, in nodes that nothing takes, whether it is small
_ASKED_OF_ZEROS = "nodes of 1.15's zeros and ones that nothing takes: mul and Less of the size"
DIFFERING: dict[str, str] = {
    code: _ASKED_OF_ZEROS
    for name, codes in CALLS.items()
    for code in codes
    if name.rpartition(".")[2] not in ("transform", "matrices_to_flat_transforms")
}
_MADE = """
r = np.random.RandomState(5)
image = tf.constant(r.rand(2, 5, 4, 3).astype('f'))
points = tf.constant(r.rand(2, 4, 2).astype('f') * 3)
others = tf.constant(r.rand(2, 4, 2).astype('f') * 3)
"""
_AREAS = "np.random.RandomState(%d).rand(%s) > 0.45"
_TURNED = "r = np.random.RandomState(7)\nimage = r.randint(0, 255, [2, 7, 6, 3]).astype('%s')\nc = tf.contrib.image\n"
VALUES: dict[str, list[str]] = {
    "contrib.image.rotate": [
        _TURNED % "uint8" + "result = [c.rotate(image, 0.4), c.rotate(image[0], 0.4), c.rotate(image[0, :, :, 0], -2.0)]",
        _TURNED % "float32" + "x = tf.constant(image)\ny = c.rotate(x, [0.4, -1.0], 'BILINEAR')\n"
        "result = [y] + tf.gradients(y * y, x)",
    ],
    "contrib.image.translate": [
        _TURNED % "int32" + "result = c.translate(image, [[1, 2], [-2, 0.6]])",
        _TURNED % "float64" + "result = c.translate(image, [0.3, -1.2], 'BILINEAR')",
    ],
    "contrib.image.translations_to_projective_transforms": [
        f"result = tf.contrib.image.translations_to_projective_transforms({moves})"
        for moves in ("[1.0, 2.0]", "[[1, 2], [3, 4]]")
    ],
    "contrib.image.compose_transforms": [
        "c = tf.contrib.image\na = c.angles_to_projective_transforms([0.5, 1.0], 3.0, 4.0)\n"
        "b = c.translations_to_projective_transforms([[1.0, 2.0], [0.5, 0.25]])\n"
        f"result = {value}"
        for value in ("c.compose_transforms(a, b)", "c.compose_transforms(a, b, a)", "c.flat_transforms_to_matrices(a)")
    ],
    "contrib.image.dense_image_warp": [
        _MADE + "result = tf.contrib.image.dense_image_warp(image, r.randn(2, 5, 4, 2).astype('f'))",
        _MADE + "flow = tf.constant(r.randn(2, 5, 4, 2))\n"
        "warped = tf.contrib.image.dense_image_warp(image, flow)\n"
        "result = [warped] + tf.gradients(tf.square(warped), [image, flow])",
    ],
    "contrib.image.interpolate_spline": [
        _MADE + f"result = tf.contrib.image.interpolate_spline(points, others, image[:, :, 0, :2], {more})"
        for more in ("1", "2", "3", "4, 0.1", "6, 0.01")
    ],
    "contrib.image.sparse_image_warp": [
        _MADE + f"result = tf.contrib.image.sparse_image_warp(image, points, points + 0.3 * others{more})"
        for more in ("", ", 1, 0.1, 1", ", num_boundary_points=3")
    ],
    "contrib.image.connected_components": [
        f"result = tf.contrib.image.connected_components({_AREAS % (1, '9, 8')})",
        f"result = tf.contrib.image.connected_components({_AREAS % (2, '3, 6, 5')})",
        "result = tf.contrib.image.connected_components(np.random.RandomState(3).randint(0, 3, [2, 7, 9]))",
        "result = tf.contrib.image.connected_components(np.zeros([2, 3], 'uint8'))",
    ],
    "contrib.image.bipartite_match": [
        f"result = tf.contrib.image.bipartite_match(np.random.RandomState(4).rand(5, 4).astype('f'), {more})"
        for more in ("-1", "3", "[2.0]", "-1, 2", "0")
    ] + [
        "result = tf.contrib.image.bipartite_match(np.array([[0.5, 0.2, 0.3], [0.2, 0.2, 0.1]], 'f'), -1)",
    ],
}  # fmt: skip
