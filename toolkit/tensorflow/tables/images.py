"""tf.image, and files of pictures in tf.io. What is one op needs no row."""

HOMES: dict[str, str] = {
    "toolkit.client.images.turning": """
        image.flip_left_right image.flip_up_down image.random_flip_left_right image.random_flip_up_down image.rot90
        image.transpose
    """,
    "toolkit.client.images.cutting": """
        image.central_crop image.crop_to_bounding_box image.pad_to_bounding_box image.resize_with_crop_or_pad
        image.random_crop
    """,
    "toolkit.client.images.resizing": "image.ResizeMethod image.resize_images image.resize_image_with_pad",
    "toolkit.client.images.value_types": "image.convert_image_dtype",
    "toolkit.client.images.colors": """
        image.adjust_brightness image.adjust_contrast image.adjust_gamma image.adjust_hue image.adjust_saturation
        image.adjust_jpeg_quality image.per_image_standardization image.random_brightness image.random_contrast
        image.random_hue image.random_saturation image.random_jpeg_quality
    """,
    "toolkit.client.images.color_spaces": """
        image.rgb_to_grayscale image.grayscale_to_rgb image.rgb_to_yiq image.yiq_to_rgb image.rgb_to_yuv
        image.yuv_to_rgb
    """,
    "toolkit.client.images.boxes": """
        image.non_max_suppression image.non_max_suppression_with_scores image.non_max_suppression_overlaps
        image.non_max_suppression_padded image.combined_non_max_suppression image.sample_distorted_bounding_box
        image.draw_bounding_boxes
    """,
    "toolkit.client.images.edges": """
        image.total_variation image.image_gradients image.sobel_edges image.extract_patches
    """,
    "toolkit.client.images.similarity": "image.psnr image.ssim image.ssim_multiscale",
    "toolkit.client.images.encoding": "io.decode_image io.encode_png io.is_jpeg",
    "toolkit.tensorflow.families.ops.images": "image.crop_and_resize image.extract_image_patches",
}
