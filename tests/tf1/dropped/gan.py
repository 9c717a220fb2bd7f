"""tf.contrib.gan: TensorFlow 1.15 had lost it, so 1.13 says what comes out (`tests.tf1.record` with that one)."""

_MADE = """
g = internal('contrib.gan')
r = np.random.RandomState(3)
real, fake = tf.constant(r.randn(6, 2).astype('f')), tf.constant(r.randn(6, 2).astype('f'))
labels = tf.one_hot([0, 1, 1, 0, 1, 0], 2)
weights = tf.constant(r.rand(6, 1).astype('f'))
"""
_LOSS = _MADE + "y = g.losses.wargs.%s\nresult = [y] + tf.gradients(y, [real, fake]) + [len(tf.losses.get_losses())]"
_ONE = _MADE + "y = g.losses.wargs.%s\nresult = [y] + tf.gradients(y, fake) + [len(tf.losses.get_losses())]"
_MODEL = (
    _MADE
    + """
f = tf.contrib.layers.fully_connected
def generator(x, *more):
    x = tf.concat((x if isinstance(x, list) else [x]) + list(more), 1)
    return f(x, 2, None, scope='g', weights_regularizer=tf.contrib.layers.l2_regularizer(0.1))
def discriminator(x, _):
    return f(x, 1, None, scope='d')
def with_classes(x, _):
    return f(x, 1, None, scope='d'), f(x, 2, None, scope='c')
def with_guesses(x, _):
    return f(x, 1, None, scope='d'), [tf.distributions.Normal(f(x, 2, None, scope='c'), 1.0)]
noise = tf.constant(r.randn(6, 2).astype('f'))
gan = lambda: g.gan_model(generator, discriminator, real, noise)
acgan = lambda: g.acgan_model(generator, with_classes, real, noise, labels)
infogan = lambda: g.infogan_model(generator, with_guesses, real, [noise], [fake])
cyclegan = lambda: g.cyclegan_model(generator, discriminator, real, fake)
stargan = lambda: g.stargan_model(generator, with_classes, real, labels)
def learned(model, loss):
    return list(loss) + tf.gradients(loss.generator_loss, model.generator_variables) + tf.gradients(
        loss.discriminator_loss, model.discriminator_variables)
"""
)
_W = "losses.wargs."
VALUES: dict[str, list[str]] = {
    f"contrib.gan.{_W}{name}": [template % f"{name}({arguments})" for arguments in several]
    for name, template, several in (
        ("wasserstein_generator_loss", _ONE, ("fake", "fake, weights, add_summaries=True")),
        ("wasserstein_discriminator_loss", _LOSS, ("real, fake", "real, fake, 2.0, weights, add_summaries=True")),
        ("acgan_discriminator_loss", _LOSS, ("real, fake, labels", "real, fake, labels, 0.3, 2.0, tf.squeeze(weights)")),
        ("acgan_generator_loss", _ONE, ("fake, labels", "fake, labels, tf.squeeze(weights), loss_collection=None")),
        ("minimax_discriminator_loss", _LOSS, ("real, fake", "real, fake, 0.1, weights, 0.5")),
        ("minimax_generator_loss", _ONE, ("fake", "fake, 0.1, weights")),
        ("modified_discriminator_loss", _LOSS, ("real, fake", "real, fake, 0.1, weights, 0.5")),
        ("modified_generator_loss", _ONE, ("fake", "fake, 0.1, weights, reduction='weighted_sum'")),
        ("least_squares_discriminator_loss", _LOSS, ("real, fake", "real, fake, 0.9, 0.1, weights, 0.5")),
        ("least_squares_generator_loss", _ONE, ("fake", "fake, 0.9, weights")),
        ("mutual_information_penalty", _ONE, (
            "[real], [tf.distributions.Normal(fake, 1.0)]",
            "[real, labels], [tf.distributions.Normal(fake, 2.0), tf.distributions.Normal(fake, 1.0)], [0.5, 2.0]",
        )),
        ("combine_adversarial_loss", _LOSS, (
            "tf.reduce_sum(real), tf.reduce_sum(real * fake), weight_factor=0.3, variables=[real]",
            "tf.reduce_sum(real ** 2), tf.reduce_sum(real * fake), gradient_ratio=2.0, variables=[real, fake]",
            "tf.reduce_sum(real + fake), tf.reduce_sum(real), 0.0, variables=[real], gradient_summaries=False",
        )),
        ("cycle_consistency_loss", _LOSS, ("real, fake, fake, real", "real, fake, labels, real, add_summaries=True")),
        ("wasserstein_gradient_penalty", _MADE + "y = g.losses.wargs.%s\nresult = y", (
            # of a plane, whose slope is the same everywhere: what is drawn does not matter
            "real, fake, None, lambda x, _: tf.reduce_sum(x * [2.0, -1.0], 1), 'd'",
            "real, fake, None, lambda x, _: (x[:, :1] * 0.5, 1), 'd', target=2.0, one_sided=True",
        )),
    )
}  # fmt: skip
VALUES.update(
    {
        f"contrib.gan.losses.{name}": [_MODEL + f"m = {model}()\nresult = g.losses.{name}(m{more})" for more in several]
        for name, model, several in (
            ("wasserstein_generator_loss", "gan", ("", ", weights=0.5")),
            ("wasserstein_discriminator_loss", "gan", ("", ", real_weights=0.5")),
            ("wasserstein_gradient_penalty", "gan", ("", ", target=2.0")),
            ("acgan_discriminator_loss", "acgan", ("", ", label_smoothing=0.1")),
            ("acgan_generator_loss", "acgan", ("", ", weights=0.5")),
            ("minimax_discriminator_loss", "gan", ("", ", label_smoothing=0.1")),
            ("minimax_generator_loss", "gan", ("", ", label_smoothing=0.1")),
            ("modified_discriminator_loss", "gan", ("", ", label_smoothing=0.1")),
            ("modified_generator_loss", "gan", ("", ", label_smoothing=0.1")),
            ("least_squares_discriminator_loss", "gan", ("", ", fake_label=0.1")),
            ("least_squares_generator_loss", "gan", ("", ", real_label=0.9")),
            ("mutual_information_penalty", "infogan", ("", ", weights=0.5")),
            ("cycle_consistency_loss", "cyclegan", ("", ", add_summaries=True")),
        )
    }
)
_COMBINED = "m = gan()\nl = g.gan_loss(m)\nresult = list(g.losses.combine_adversarial_loss(l, m, tf.reduce_sum(m.generated_data ** 2), %s))"
VALUES["contrib.gan.losses.combine_adversarial_loss"] = [
    _MODEL + _COMBINED % "0.5", _MODEL + _COMBINED % "gradient_ratio=3.0",
]  # fmt: skip
VALUES.update(
    {
        f"contrib.gan.losses.stargan_{name}_wrapper": [
            _MODEL
            + f"w = g.losses.wargs\nresult = g.losses.stargan_{name}_wrapper(w.{loss})(stargan(){more})"
            + ("\nresult = tf.shape(result)" if name == "generator_loss" else "")
            for loss, more in several
        ]
        for name, several in (
            ("generator_loss", (("wasserstein_generator_loss", ""), ("minimax_generator_loss", ", weights=0.5"))),
            (
                "gradient_penalty",
                (("wasserstein_gradient_penalty", ""), ("wasserstein_gradient_penalty", ", target=2.0")),
            ),
        )
    }
)
VALUES["contrib.gan.losses.stargan_discriminator_loss_wrapper"] = [
    _MODEL
    + f"w = g.losses.wargs\nresult = g.losses.stargan_discriminator_loss_wrapper(w.wasserstein_discriminator_loss)(stargan(), generated_weights={weight})"
    for weight in ("0.0", "[[0.0]]")
]
VALUES.update({
    "contrib.gan.gan_model": [
        _MODEL + "m = gan()\nresult = [m.generated_data, m.discriminator_real_outputs, m.discriminator_gen_outputs]",
        _MODEL + "m = g.gan_model(lambda x: generator([x['a'], x['b']]), discriminator, real, {'a': noise, 'b': fake}, 'G', 'D', False)\n"
        "result = [v.name for v in m.generator_variables + m.discriminator_variables] + [m.generator_scope.name]",
    ],
    "contrib.gan.infogan_model": [
        _MODEL + "m = infogan()\nresult = [m.generated_data, m.discriminator_gen_outputs, m.predicted_distributions[0].mean()]",
        _MODEL + "m = infogan()\nresult = [v.name for v in m.discriminator_variables] + [m.discriminator_fn(real, None)]",
    ],
    "contrib.gan.acgan_model": [
        _MODEL + "m = acgan()\nresult = [m.generated_data, m.discriminator_gen_outputs, m.discriminator_real_classification_logits]",
        _MODEL + "m = acgan()\nresult = [m.discriminator_gen_classification_logits, m.discriminator_real_outputs.name]",
    ],
    "contrib.gan.cyclegan_model": [
        _MODEL + "m = cyclegan()\nresult = [m.reconstructed_x, m.reconstructed_y]",
        _MODEL + "m = cyclegan()\nresult = [v.name for v in m.model_y2x.discriminator_variables]",
    ],
    "contrib.gan.stargan_model": [
        _MODEL.replace("f(x, 2, None, scope='g'", "f(x[:, :2], 2, None, scope='g'")
        + "m = stargan()\nresult = [m.generated_data, m.reconstructed_data, m.discriminator_input_data_domain_predication]",
        _MODEL + "m = stargan()\nresult = [v.name for v in m.generator_variables] + [tf.reduce_sum(m.generated_data_domain_target, 1)]",
    ],
    "contrib.gan.gan_loss": [
        _MODEL + f"m = {model}()\nresult = learned(m, g.gan_loss(m{more}))"
        for model, more in (
            ("gan", ""), ("gan", ", g.losses.modified_generator_loss, g.losses.modified_discriminator_loss, add_summaries=False"),
            ("gan", ", gradient_penalty_weight=3.0, gradient_penalty_one_sided=True"),
            ("acgan", ", aux_cond_generator_weight=0.5, aux_cond_discriminator_weight=tf.constant(2.0)"),
            ("infogan", ", mutual_information_penalty_weight=0.7"),
            ("gan", ", tensor_pool_fn=lambda x: (x[0] * 2, x[1] * 3)"),
            ("acgan", ", tensor_pool_fn=lambda x: (x[0] * 2, x[1] * 3), aux_cond_discriminator_weight=1.0"),
            ("infogan", ", tensor_pool_fn=lambda x: (x[0], x[1] * 3, [x[2][0] * 2]), mutual_information_penalty_weight=0.7"),
        )
    ],
    "contrib.gan.cyclegan_loss": [
        _MODEL + f"m = cyclegan()\nl = g.cyclegan_loss(m{more})\nresult = learned(m.model_x2y, l.loss_x2y) + list(l.loss_y2x)"
        for more in ("", ", cycle_consistency_loss_weight=2.0, gradient_penalty_weight=1.0, add_summaries=False")
    ],
    "contrib.gan.stargan_loss": [
        # a generator that does not look at the domain that is drawn
        _MODEL.replace("f(x, 2, None, scope='g'", "f(x[:, :2], 2, None, scope='g'")
        + f"m = stargan()._replace(generated_data_domain_target=labels)\nresult = list(g.stargan_loss(m{more}))"
        for more in ("", ", gradient_penalty_weight=None, reconstruction_loss_weight=2.0, classification_loss_weight=0.5")
    ],
    "contrib.gan.gan_train_ops": [
        _MODEL + "o = tf.train.GradientDescentOptimizer\nm = gan()\nt = g.gan_train_ops(m, g.gan_loss(m), o(0.1), o(0.2))\n"
        "result = [t.generator_train_op, t.discriminator_train_op]",
        _MODEL + "o = tf.train.GradientDescentOptimizer\nm = cyclegan()\nt = g.gan_train_ops(m, g.cyclegan_loss(m), o(0.1), o(0.2), summarize_gradients=True)\n"
        "result = [len(t.generator_train_op), len(t.discriminator_train_op), len(t.train_hooks)]",
    ],
    "contrib.gan.features.condition_tensor": [
        _MODEL + "result = g.features.condition_tensor(noise, real)",
        _MODEL + "result = g.features.condition_tensor(tf.reshape(noise, [3, 2, 2]), tf.reshape(real, [3, 4]))",
    ],
    "contrib.gan.features.condition_tensor_from_onehot": [
        _MODEL + f"result = g.features.condition_tensor_from_onehot(noise, labels{more})" for more in ("", ", 3")
    ],
    "contrib.gan.features.tensor_pool": [
        _MODEL + "result = g.features.tensor_pool([noise, real], pool_size=2)",
        _MODEL + "result = g.features.tensor_pool(noise, 0)",
        _MODEL + "p = g.features.tensor_pool(tf.constant(3.0), 1, 1.0)\nwith tf.Session() as s:\n    result = [s.run(p) for _ in range(3)]",
    ],
    "contrib.gan.features.clip_variables": [
        _MODEL + f"v = tf.Variable([3.0, 4.0], name='v')\no = g.features.clip_variables(tf.train.GradientDescentOptimizer(1.0), [v], {bound})\n"
        "with tf.control_dependencies([o.minimize(tf.reduce_sum(v) * 0)]):\n    result = tf.identity(v.read_value())"
        for bound in (0.1, 2.0)
    ],
    "contrib.gan.features.clip_discriminator_weights": [
        _MODEL + f"m = gan()\no = g.features.clip_discriminator_weights(tf.train.GradientDescentOptimizer(1.0), m, {bound})\n"
        "t = o.minimize(tf.reduce_sum(m.discriminator_variables[0]) * 0, var_list=m.discriminator_variables[:1])\n"
        "with tf.control_dependencies([t]):\n    result = tf.identity(m.discriminator_variables[0].read_value())"
        for bound in (0.1, 2.0)
    ],
})  # fmt: skip
