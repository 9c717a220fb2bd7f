"""tf.contrib.image."""

HOMES: dict[str, str] = {
    "toolkit.client.images.projective": """
        contrib.image.angles_to_projective_transforms contrib.image.compose_transforms
        contrib.image.flat_transforms_to_matrices contrib.image.matrices_to_flat_transforms contrib.image.rotate
        contrib.image.transform contrib.image.translate contrib.image.translations_to_projective_transforms
    """,
    "toolkit.client.images.warping": """
        contrib.image.dense_image_warp contrib.image.interpolate_spline contrib.image.sparse_image_warp
    """,
    "toolkit.client.images.matching": "contrib.image.bipartite_match contrib.image.connected_components",
}
