"""Pictures as tensors: [height, width, channels], or [batch, height, width, channels].

`checks` says what is a picture, `value_types` converts between integers and floats; `turning`, `cutting` and
`resizing` change the geometry, `colors` and `color_spaces` the pixels; `boxes` has boxes in pictures, `edges` and
`similarity` what is measured, `encoding` files of pictures.
"""
