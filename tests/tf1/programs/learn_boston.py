"""House prices of Boston by a deep regressor, in the calls of skflow's time."""

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
learn = tf.contrib.learn
boston = learn.datasets.load_dataset("boston")
x, y = boston.data.astype(np.float32), boston.target.astype(np.float32)
x = (x - x.mean(axis=0)) / x.std(axis=0)
x_train, x_test, y_train, y_test = x[:400], x[400:], y[:400], y[400:]

feature_columns = learn.infer_real_valued_columns_from_input(x_train)
regressor = learn.DNNRegressor(
    feature_columns=feature_columns, hidden_units=[10, 10], config=learn.RunConfig(tf_random_seed=2),
    optimizer=tf.train.ProximalAdagradOptimizer(learning_rate=0.1, l1_regularization_strength=0.001),
)
for _ in range(3):
    regressor.fit(x_train, y_train, steps=20, batch_size=50)
    found = regressor.evaluate(
        x_test, y_test,
        metrics={"mse": tf.metrics.mean_squared_error, "mae": tf.contrib.metrics.streaming_mean_absolute_error},
    )
    for key in sorted(found):
        print("%.4f" % found[key])
predictions = list(regressor.predict(x_test, as_iterable=True))
for value in predictions[:4]:
    print("%.4f" % value)
for value in regressor.predict_scores(x_test[:3], as_iterable=False):
    print("%.4f" % value)

linear = learn.LinearRegressor(feature_columns=feature_columns, config=learn.RunConfig(tf_random_seed=3))
sk = learn.SKCompat(linear)
sk.fit(x_train, y_train, batch_size=40, steps=30)
score = sk.score(x_test, y_test, metrics={"mse": learn.MetricSpec(tf.metrics.mean_squared_error, "scores")})
for key in sorted(score):
    print("%.4f" % score[key])
print("%.4f" % np.mean(sk.predict(x_test)["scores"]))
for name in sorted(linear.get_variable_names())[:2]:
    print("%.4f" % np.sum(linear.get_variable_value(name)))
