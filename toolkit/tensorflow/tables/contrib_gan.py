"""tf.contrib.gan, as releases before 1.14 had it."""

HOMES: dict[str, str] = {
    "toolkit.client.adversarial.conditions": """
        contrib.gan.features.condition_tensor contrib.gan.features.condition_tensor_from_onehot
        contrib.gan.features.tensor_pool
    """,
    "toolkit.client.adversarial.losses": """
        contrib.gan.losses.wargs.acgan_discriminator_loss contrib.gan.losses.wargs.acgan_generator_loss
        contrib.gan.losses.wargs.combine_adversarial_loss contrib.gan.losses.wargs.cycle_consistency_loss
        contrib.gan.losses.wargs.least_squares_discriminator_loss
        contrib.gan.losses.wargs.least_squares_generator_loss
        contrib.gan.losses.wargs.minimax_discriminator_loss contrib.gan.losses.wargs.minimax_generator_loss
        contrib.gan.losses.wargs.modified_discriminator_loss contrib.gan.losses.wargs.modified_generator_loss
        contrib.gan.losses.wargs.mutual_information_penalty
        contrib.gan.losses.wargs.wasserstein_discriminator_loss
        contrib.gan.losses.wargs.wasserstein_generator_loss
        contrib.gan.losses.wargs.wasserstein_gradient_penalty
    """,
    "toolkit.client.adversarial.losses_of_models": """
        contrib.gan.losses.acgan_discriminator_loss contrib.gan.losses.acgan_generator_loss
        contrib.gan.losses.combine_adversarial_loss contrib.gan.losses.cycle_consistency_loss
        contrib.gan.losses.least_squares_discriminator_loss contrib.gan.losses.least_squares_generator_loss
        contrib.gan.losses.minimax_discriminator_loss contrib.gan.losses.minimax_generator_loss
        contrib.gan.losses.modified_discriminator_loss contrib.gan.losses.modified_generator_loss
        contrib.gan.losses.mutual_information_penalty contrib.gan.losses.stargan_discriminator_loss_wrapper
        contrib.gan.losses.stargan_generator_loss_wrapper contrib.gan.losses.stargan_gradient_penalty_wrapper
        contrib.gan.losses.wasserstein_discriminator_loss contrib.gan.losses.wasserstein_generator_loss
        contrib.gan.losses.wasserstein_gradient_penalty
    """,
    "toolkit.client.adversarial.models": """
        contrib.gan.GANModel contrib.gan.InfoGANModel contrib.gan.ACGANModel contrib.gan.CycleGANModel
        contrib.gan.StarGANModel contrib.gan.gan_model contrib.gan.infogan_model contrib.gan.acgan_model
        contrib.gan.cyclegan_model contrib.gan.stargan_model
    """,
    "toolkit.client.adversarial.total": """
        contrib.gan.GANLoss contrib.gan.CycleGANLoss contrib.gan.gan_loss contrib.gan.cyclegan_loss
        contrib.gan.stargan_loss
    """,
    "toolkit.tensorflow.families.contrib.adversarial_training": """
        contrib.gan.GANTrainOps contrib.gan.GANTrainSteps contrib.gan.RunTrainOpsHook contrib.gan.gan_train
        contrib.gan.gan_train_ops contrib.gan.get_joint_train_hooks contrib.gan.get_sequential_train_hooks
        contrib.gan.get_sequential_train_steps contrib.gan.features.clip_variables
        contrib.gan.features.clip_discriminator_weights
    """,
}
