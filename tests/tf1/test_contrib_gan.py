"""tf.contrib.gan: both learn, in turns, as often as they should; and what cannot be put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.tensorflow import modules

gan = modules.module("contrib.gan")


def generator(noise: Any) -> Any:
    return tf.layers.dense(noise, 2, name="g")


def discriminator(data: Any, _: Any) -> Any:
    return tf.layers.dense(data, 1, name="d")


def parts(optimizer: Any = None) -> tuple[Any, Any]:
    model = gan.gan_model(generator, discriminator, tf.ones([4, 2]), tf.ones([4, 3]))
    loss = gan.gan_loss(model)
    optimizer = optimizer or tf.train.GradientDescentOptimizer(0.1)
    return model, gan.gan_train_ops(model, loss, optimizer, tf.train.GradientDescentOptimizer(0.2))


class Counting(tf.train.GradientDescentOptimizer):
    """Counts the steps of each variable's scope."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        with tf.control_dependencies([tf.assign_add(self.count, 1)]):
            applied: Any = tf.train.GradientDescentOptimizer.apply_gradients
            return applied(self, list(grads_and_vars), global_step, name)

    @property
    def count(self) -> Any:
        with tf.variable_scope("counting", reuse=tf.AUTO_REUSE):
            return tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), trainable=False)


@pytest.mark.parametrize("hooks", ["get_sequential_train_hooks", "get_joint_train_hooks"])
@pytest.mark.parametrize("counts", [(1, 1), (3, 1), (0, 2)])
def test_steps_of_both(tmp_path: Path, hooks: str, counts: tuple[int, int]) -> None:
    with tf.Graph().as_default():
        optimizer = Counting(0.1)
        _, ops = parts(optimizer)
        steps = gan.GANTrainSteps(*counts)
        stop = tf.train.StopAtStepHook(num_steps=4)
        step = gan.gan_train(ops, str(tmp_path), getattr(gan, hooks)(steps), hooks=[stop])
        assert step == 4
        reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
        # hooks run before each of the four steps
        assert reader.get_tensor("counting/count") == 4 * counts[0]


def test_steps_of_slim(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        model, ops = parts()
        train = gan.get_sequential_train_steps(gan.GANTrainSteps(2, 1))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            kernel = model.discriminator_variables[0]
            before = session.run(kernel)
            step = tf.train.get_global_step()
            loss, stop = train(session, ops, step, {"should_stop": step >= 2})
            assert np.isfinite(loss) and not stop
            _, stop = train(session, ops, step, {"should_stop": step >= 2})
            assert stop
            assert np.any(session.run(kernel) != before)


def test_updates_of_neither() -> None:
    with tf.Graph().as_default():
        model = gan.gan_model(generator, discriminator, tf.ones([4, 2]), tf.ones([4, 3]))
        loss = gan.gan_loss(model)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op(name="stray"))
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        with pytest.raises(ValueError, match="neither the generator's nor the discriminator's scope: stray"):
            gan.gan_train_ops(model, loss, optimizer, optimizer)
        ops = gan.gan_train_ops(model, loss, optimizer, optimizer, check_for_unused_update_ops=False)
        assert ops.train_hooks == []


def test_mistakes() -> None:
    losses = gan.losses
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=r"generated data has shape \[4,2\], real data \[4,3\]"),
    ):
        gan.gan_model(generator, lambda x, _: tf.reduce_sum(x, 1), tf.ones([4, 3]), tf.ones([4, 3]))
    with tf.Graph().as_default():
        model, _ = parts()
        with pytest.raises(ValueError, match="expected 0 or more, got -1"):
            gan.gan_loss(model, gradient_penalty_weight=-1)
        with pytest.raises(ValueError, match="is for an InfoGANModel, not a GANModel"):
            gan.gan_loss(model, mutual_information_penalty_weight=1.0)
        with pytest.raises(ValueError, match="are for an ACGANModel, not a GANModel"):
            gan.gan_loss(model, aux_cond_generator_weight=1.0)
        with pytest.raises(ValueError, match="expected a CycleGANModel, got GANModel"):
            gan.cyclegan_loss(model)
        with pytest.raises(ValueError, match="expected a CycleGANModel, got GANModel"):
            losses.cycle_consistency_loss(model)
        with pytest.raises(ValueError, match="the model has no one_hot_labels"):
            losses.acgan_generator_loss(model, discriminator_gen_classification_logits=tf.ones([4, 2]))
        with pytest.raises(ValueError, match="the model has discriminator_gen_outputs already"):
            losses.wasserstein_generator_loss(model, discriminator_gen_outputs=1.0)
        with pytest.raises(ValueError, match="one of weight_factor and gradient_ratio"):
            losses.combine_adversarial_loss(gan.gan_loss(model), model, tf.constant(1.0))
        with pytest.raises(TypeError, match="expected logits of real or generated, and logits of classes"):
            gan.acgan_model(generator, discriminator, tf.ones([4, 2]), tf.ones([4, 3]), tf.ones([4, 2]), "G", "D")
        with pytest.raises(ValueError, match="pool_size: expected 0 or more"):
            gan.features.tensor_pool(tf.ones([1]), -1)
        with pytest.raises(ValueError, match="conditioning: expected"):
            gan.features.condition_tensor(tf.ones([2, 3]), tf.ones([2]))
        with pytest.raises(ValueError, match="one_hot_labels: expected"):
            gan.features.condition_tensor_from_onehot(tf.ones([2, 3]), tf.ones([2]))
        with pytest.raises(ValueError, match="weight_clip: expected 0 or more"):
            gan.features.clip_variables(tf.train.GradientDescentOptimizer(0.1), [], -1.0)
        with pytest.raises(ValueError, match="expected distributions, got Tensor"):
            losses.wargs.mutual_information_penalty([1.0], [tf.ones([2])])
        with pytest.raises(ValueError, match="one for each of 2 inputs, got 1"):
            losses.wargs.mutual_information_penalty([1.0, 2.0], [tf.distributions.Normal(0.0, 1.0)])
        with pytest.raises(ValueError, match="the number of its dimensions has to be known"):
            losses.wargs.wasserstein_gradient_penalty(tf.placeholder(tf.float32), 1.0, None, discriminator, "D")
