"""Pictures."""

_ONE, _BATCH, _UNKNOWN, _ANY = "f(8, 6, 3)", "f(2, 8, 6, 3)", "f(None, None, 3)", "f(None, None, None, 3)"
_UINT8 = "tf.placeholder(tf.uint8, [8, 6, 3])"
_FREE = "tf.placeholder(tf.float32, None)"
_BOXES = "f(5, 4), f(5)"


def _of(name: str, more: str = "", *images: str) -> list[str]:
    return [f"tf.image.{name}({image}{more})" for image in images]


_EACH = (_ONE, _BATCH, _UNKNOWN, _ANY, _FREE)

CALLS: dict[str, list[str]] = {
    **{f"image.{name}": _of(name, "", *_EACH) for name in ("flip_left_right", "flip_up_down", "transpose")},
    **{
        f"image.{name}": _of(name, "", *_EACH) + _of(name, ", seed=3", _ONE)
        for name in ("random_flip_left_right", "random_flip_up_down")
    },
    "image.rot90": [*_of("rot90", "", *_EACH[:4]), "tf.image.rot90(f(8, 6, 3), i(), name='n')", f"tf.image.rot90({_FREE}, 3)"],
    "image.central_crop": [*_of("central_crop", ", 0.5", *_EACH[:4]), "tf.image.central_crop(f(8, 6, 3), 1.0)", "tf.image.central_crop(f(8, 6, 3), d())", "tf.image.central_crop(f(8, None, 3), 0.87)"],
    "image.pad_to_bounding_box": [*_of("pad_to_bounding_box", ", 1, 2, 12, 10", *_EACH), "tf.image.pad_to_bounding_box(f(8, 6, 3), i(), 0, i(), 9)"],
    "image.crop_to_bounding_box": [*_of("crop_to_bounding_box", ", 1, 2, 4, 3", *_EACH), "tf.image.crop_to_bounding_box(f(8, 6, 3), i(), 0, i(), 3)"],
    "image.resize_with_crop_or_pad": [*_of("resize_image_with_crop_or_pad", ", 7, 9", *_EACH), "tf.image.resize_with_crop_or_pad(f(8, 6, 3), i(), 9)"],
    "image.random_crop": [
        "tf.random_crop(f(8, 6, 3), [4, 4, 3])", "tf.image.random_crop(f(None, 6, 3), i(3), seed=3, name='n')",
    ],
    "image.resize_images": [
        "tf.image.resize_images(f(8, 6, 3), [4, 4])", "tf.image.resize_images(f(2, 8, 6, 3), (4, 4), 1, align_corners=True)",
        "tf.image.resize_images(f(2, 8, 6, 3), [8, 6])", "tf.image.resize_images(f(8, 6, 3), [8, 6])",
        "tf.image.resize_images(f(None, None, None, 3), i(2), tf.image.ResizeMethod.BICUBIC, name='n')",
        "tf.image.resize(f(2, 8, 6, 3), [4, 4], 'area')", "tf.image.resize(f(2, None, 6, 3), [i(), 4])",
        "tf.image.resize_images(f(8, 6, 3), [4, 4], preserve_aspect_ratio=True)",
        "tf.image.resize_images(f(None, None, 3), [4, 4], preserve_aspect_ratio=True)",
        "tf.image.resize_images(f(8, 6, 3), tf.constant([4, 5]), tf.image.ResizeMethod.NEAREST_NEIGHBOR)",
    ],
    "image.resize_image_with_pad": [*_of("resize_image_with_pad", ", 12, 10", *_EACH), "tf.image.resize_image_with_pad(f(8, 6, 3), 4, 4, 1, True)"],
    "image.convert_image_dtype": [
        f"tf.image.convert_image_dtype({_UINT8}, tf.float32)", "tf.image.convert_image_dtype(f(2), tf.uint8, saturate=True, name='n')",
        "tf.image.convert_image_dtype(f(2), tf.uint8)", "tf.image.convert_image_dtype(f(2), tf.float32)",
        f"tf.image.convert_image_dtype({_UINT8}, tf.uint16)", f"tf.image.convert_image_dtype({_UINT8}, tf.int16, True)",
        "tf.image.convert_image_dtype(i(2), tf.uint8)", "tf.image.convert_image_dtype(i(2), tf.uint8, True)",
        "tf.image.convert_image_dtype(f(2), tf.float64)",
    ],
    "image.adjust_brightness": [f"tf.image.adjust_brightness({image}, 0.1)" for image in (_ONE, _UINT8)],
    "image.adjust_contrast": [f"tf.image.adjust_contrast({image}, 0.1)" for image in (_ONE, _UINT8)],
    "image.adjust_gamma": [f"tf.image.adjust_gamma({image}, 0.5, 2)" for image in (_ONE, _UINT8)]
    + ["tf.image.adjust_gamma(f(2, 2, 3), f())"],
    "image.adjust_hue": [f"tf.image.adjust_hue({image}, 0.1, name='n')" for image in (_ONE, _UINT8)],
    "image.adjust_saturation": [f"tf.image.adjust_saturation({image}, 0.1)" for image in (_ONE, _UINT8)],
    "image.adjust_jpeg_quality": [f"tf.image.adjust_jpeg_quality({image}, 50)" for image in (_ONE, _UINT8)]
    + ["tf.image.adjust_jpeg_quality(f(8, 6, 3), i(), 'INTEGER_FAST', name='n')"],
    "image.random_brightness": [f"tf.image.random_brightness({image}, 0.1, seed=2)" for image in (_ONE, _UINT8)],
    "image.random_contrast": [f"tf.image.random_contrast({image}, 0.1, 0.5)" for image in (_ONE, _UINT8)],
    "image.random_hue": [f"tf.image.random_hue({image}, 0.1)" for image in (_ONE, _UINT8)],
    "image.random_saturation": [f"tf.image.random_saturation({image}, 0.1, 0.5, seed=4)" for image in (_ONE, _UINT8)],
    "image.random_jpeg_quality": [f"tf.image.random_jpeg_quality({image}, 10, 50, seed=4)" for image in (_ONE, _UINT8)],
    "image.per_image_standardization": _of("per_image_standardization", "", *_EACH[:4], _UINT8),
    "image.rgb_to_grayscale": _of("rgb_to_grayscale", "", _ONE, _UINT8, _UNKNOWN, "f(None, 8, 6, 3)"),
    "image.grayscale_to_rgb": [
        "tf.image.grayscale_to_rgb(f(8, 6, 1))", "tf.image.grayscale_to_rgb(f(None, None, 1), name='n')",
        f"tf.image.grayscale_to_rgb({_FREE})",
    ],
    **{f"image.{name}": _of(name, "", _ONE, _ANY) for name in ("rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb")},
    "image.non_max_suppression": [
        f"tf.image.non_max_suppression({_BOXES}, 3)", f"tf.image.non_max_suppression({_BOXES}, i(), 0.3, 0.1, name='n')",
    ],
    "image.non_max_suppression_with_scores": [
        f"tf.image.non_max_suppression_with_scores({_BOXES}, 3)",
        f"tf.image.non_max_suppression_with_scores({_BOXES}, 3, 0.3, 0.1, 0.5, name='n')",
    ],
    "image.non_max_suppression_overlaps": [
        "tf.image.non_max_suppression_overlaps(f(5, 5), f(5), 3)",
        "tf.image.non_max_suppression_overlaps(f(5, 5), f(5), 3, 0.4, 0.1, name='n')",
    ],
    "image.non_max_suppression_padded": [
        f"tf.image.non_max_suppression_padded({_BOXES}, 3)",
        "tf.image.non_max_suppression_padded(f(2, 5, 4), f(2, 5), 3, pad_to_max_output_size=True)",
    ],
    "image.combined_non_max_suppression": [
        "tf.image.combined_non_max_suppression(f(2, 5, 1, 4), f(2, 5, 3), 3, 4)",
        "tf.image.combined_non_max_suppression(f(2, 5, 1, 4), f(2, 5, 3), 3, 4, 0.4, 0.1, True, False, name='n')",
    ],
    "image.sample_distorted_bounding_box": [
        "tf.image.sample_distorted_bounding_box([8, 6, 3], f(1, 2, 4))",
        "tf.image.sample_distorted_bounding_box(i(3), f(1, 2, 4), 3, 4, 0.2, [0.5, 2.0], (0.1, 1.0), 10, True, name='n')[0]",
    ],
    "image.draw_bounding_boxes": [
        "tf.image.draw_bounding_boxes(f(2, 8, 6, 3), f(2, 1, 4))",
        "tf.image.draw_bounding_boxes(f(2, 8, 6, 3), f(2, 1, 4), 'n', [[1.0, 0.0, 0.0]])",
    ],
    "image.crop_and_resize": [
        "tf.image.crop_and_resize(f(2, 8, 6, 3), f(5, 4), i(5), [3, 3])",
        "tf.image.crop_and_resize(f(2, 8, 6, 3), f(5, 4), crop_size=i(2), method='nearest', extrapolation_value=1.0, name='n', box_indices=i(5))",
    ],
    "image.extract_image_patches": [
        "tf.extract_image_patches(f(2, 8, 6, 3), [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
        "tf.image.extract_image_patches(f(2, 8, 6, 3), strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding='VALID', sizes=[1, 2, 2, 1])",
    ],
    "image.extract_patches": [
        "tf.image.extract_patches(f(2, 8, 6, 3), [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
        "tf.image.extract_patches(f(2, 8, 6, 3), [1, 2, 2, 1], [1, 1, 1, 1], [1, 2, 1, 1], 'VALID', name='n')",
    ],
    "image.total_variation": _of("total_variation", "", _ONE, _BATCH) + _of("total_variation", ", name='n'", _ANY),
    "image.image_gradients": _of("image_gradients", "", _BATCH, _ANY),
    "image.sobel_edges": _of("sobel_edges", "", _BATCH, _ANY),
    "image.psnr": ["tf.image.psnr(f(8, 6, 3), f(8, 6, 3), 1.0)", f"tf.image.psnr({_UINT8}, {_UINT8}, 255, name='n')"],
    "image.ssim": [
        "tf.image.ssim(f(2, 16, 12, 3), f(2, 16, 12, 3), 1.0)", f"tf.image.ssim({_ANY}, {_ANY}, 1.0, 5, 1.0, 0.02, 0.04, True)",
        f"tf.image.ssim({_UINT8}, {_UINT8}, 255, 5)",
    ],
    "image.ssim_multiscale": [
        "tf.image.ssim_multiscale(f(2, 48, 48, 3), f(2, 48, 48, 3), 1.0, [0.5, 0.5])",
        f"tf.image.ssim_multiscale({_ANY}, {_ANY}, 1.0, filter_size=5)",
    ],
    "io.encode_png": [f"tf.image.encode_png({_UINT8})", f"tf.io.encode_png({_UINT8}, 5, name='n')"],
    "io.decode_image": [
        "tf.image.decode_image(s())", "tf.image.decode_image(s(), 3, tf.float32, name='n', expand_animations=False)",
        "tf.io.decode_image(s(), dtype=tf.float64)", "tf.io.decode_image(s(), 0, tf.uint16, expand_animations=False)",
    ],
    "io.is_jpeg": ["tf.image.is_jpeg(s())", "tf.io.is_jpeg(s(), name='n')"],
}  # fmt: skip
