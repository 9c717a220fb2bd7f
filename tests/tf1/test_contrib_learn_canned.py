"""tf.contrib.learn's canned estimators, heads and data: old calls, served models, and what is told of mistakes.

What they compute is held to 1.15 in tests/tf1/dropped/contrib_estimators and by the programs learn_*.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

learn, layers = tf.contrib.learn, tf.contrib.layers
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(40, 2).astype(np.float32)
CLASSES = (X[:, 0] > 0).astype(np.int64)


def columns() -> Any:
    return [layers.real_valued_column("", 2)]


def numbers() -> Any:
    return tf.constant(X), tf.constant(CLASSES.astype(np.float32)[:, None])


def test_arrays_are_classified(tmp_path: Path) -> None:
    model = learn.DNNClassifier([8], columns(), str(tmp_path), optimizer="Adam")
    model.fit(X, CLASSES, steps=30, batch_size=10)
    found = model.evaluate(X, CLASSES)
    assert {"accuracy", "auc", "loss", "global_step", "labels/prediction_mean"} <= found.keys()
    classes = model.predict(X, as_iterable=False)
    assert classes.shape == (40,)
    assert list(model.predict_classes(X)) == list(classes)
    likely = np.array(list(model.predict_proba(X, batch_size=7)))
    np.testing.assert_array_equal(likely.argmax(1), classes)
    assert round(len(X) * float(found["accuracy"])) == np.sum(classes == CLASSES)
    (one,) = list(model.predict(X[:1], outputs=["logits", "classes"]))
    assert one.keys() == {"logits", "classes"}


def test_another_estimator_goes_on_with_a_model(tmp_path: Path) -> None:
    learn.LinearRegressor(columns(), str(tmp_path)).fit(input_fn=numbers, steps=3)
    again = learn.LinearRegressor(columns(), str(tmp_path))
    before = np.array(list(again.predict_scores(X)))
    again.fit(input_fn=numbers, steps=2)
    assert again.get_variable_value("global_step") == 5
    assert np.abs(np.array(list(again.predict(X))) - before).max() > 0


def test_each_optimizer_of_two_parts_counts_unless_told_not_to(tmp_path: Path) -> None:
    def steps(**more: Any) -> int:
        model = learn.DNNLinearCombinedRegressor(
            str(tmp_path / f"{len(more)}"), linear_feature_columns=columns(), dnn_feature_columns=columns(),
            dnn_hidden_units=[3], **more,
        )  # fmt: skip
        return int(model.fit(input_fn=numbers, steps=4).get_variable_value("global_step"))

    # each step of training counts as two; the hook that stops may read the count before or after the last one
    assert steps() in (4, 6)
    assert steps(fix_global_step_increment_bug=True) == 4


def test_words_are_served_for_classes(tmp_path: Path) -> None:
    words = np.array([["no"], ["yes"], ["maybe"]])[CLASSES]
    column = layers.real_valued_column("x", 2)
    model = learn.LinearClassifier([column], str(tmp_path / "m"), 3, label_keys=["no", "yes", "maybe"])
    model.fit(input_fn=lambda: ({"x": tf.constant(X)}, tf.constant(words)), steps=20)
    spec = layers.create_feature_spec_for_parsing([column])
    path = model.export_savedmodel(str(tmp_path / "served"), learn.build_parsing_serving_input_fn(spec))
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[3.0, 0.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        assert signature.method_name == "tensorflow/serving/classify"
        given = {signature.inputs["inputs"].name: [example]}
        classes, scores = session.run([signature.outputs[key].name for key in ("classes", "scores")], given)
    assert classes.tolist() == [[b"no", b"yes", b"maybe"]]
    assert scores[0].argmax() == 1


def test_a_loss_without_logits_is_added(tmp_path: Path) -> None:
    from toolkit.tensorflow.learn.head_makers import loss_only_head

    def far_from_one() -> Any:
        return tf.reduce_sum(tf.square(tf.trainable_variables()[0] - 1.0))

    heads = [learn.regression_head(head_name="number"), loss_only_head(far_from_one, "far")]
    model = learn.DNNEstimator(learn.multi_head(heads, [1.0, 1.0]), [2], columns(), str(tmp_path))
    found = model.fit(input_fn=numbers, steps=2).evaluate(input_fn=numbers, steps=1)
    assert found["loss"] > found["loss/number"]


def test_heads_say_what_they_cannot_take() -> None:
    with pytest.raises(ValueError, match="n_classes must be above 1; got 1"):
        learn.multi_class_head(1)
    with pytest.raises(ValueError, match="label_keys are for more than two classes"):
        learn.multi_class_head(2, label_keys=["a", "b"])
    with pytest.raises(ValueError, match="label_keys has 2 words for 3 classes"):
        learn.multi_class_head(3, label_keys=["a", "b"])
    with pytest.raises(ValueError, match="metric_class_ids has 3; the classes are 0 to 2"):
        learn.multi_label_head(3, metric_class_ids=[3])
    with pytest.raises(ValueError, match="loss_fn must take labels, logits and weights; weights missing"):
        learn.multi_class_head(3, loss_fn=lambda labels, logits: None)
    with pytest.raises(ValueError, match="must have a name; give head_name"):
        learn.multi_head([learn.regression_head()])
    with pytest.raises(ValueError, match="loss_weights has 1 numbers for 2 heads"):
        learn.multi_head([learn.regression_head(head_name=name) for name in "ab"], [1.0])


def call(head: Any, labels: Any, mode: str = "eval", **more: Any) -> Any:
    with tf.Graph().as_default():
        given = {"logits": tf.zeros([2, head.logits_dimension]), **more}
        return head.create_model_fn_ops({"x": tf.zeros([2])}, mode, labels(), **given)


def test_heads_say_what_is_wrong_with_their_inputs() -> None:
    class_head, flags = learn.multi_class_head(3), lambda: tf.constant([0, 1])
    with pytest.raises(ValueError, match="labels must be integers, the numbers of classes; they are float32"):
        call(class_head, lambda: tf.constant([0.0, 1.0]))
    with pytest.raises(ValueError, match="there is no label 'y'; there are: z"):
        call(learn.multi_class_head(3, label_name="y"), lambda: {"z": tf.constant([0, 1])})
    with pytest.raises(ValueError, match="the weights 'w' are no feature; there are: x"):
        call(learn.multi_class_head(3, weight_column_name="w"), flags)
    with pytest.raises(ValueError, match="the labels are a SparseTensor"):
        call(class_head, lambda: tf.SparseTensor([[0, 0]], [1], [2, 1]))
    with pytest.raises(ValueError, match="to train, a head needs train_op_fn"):
        call(class_head, flags, "train")
    with pytest.raises(ValueError, match="there is no 'predict'"):
        call(class_head, flags, "predict")
    with pytest.raises(ValueError, match="give logits or logits_input, one of them"):
        call(class_head, flags, logits_input=1)
    with pytest.raises(ValueError, match=r"the logits are of shape \[2,2\]; the head has 3 for each example"):
        call(class_head, flags, logits=[[0.0, 0.0]] * 2)
    with pytest.raises(ValueError, match=r"the labels are of shape \[2,1\] and the logits of \[2,2\]"):
        call(learn.regression_head(label_dimension=2), lambda: tf.constant([0.0, 1.0]))


def test_models_say_what_they_cannot_be_made_of(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="feature_columns is empty"):
        learn.LinearClassifier([])
    with pytest.raises(ValueError, match="give linear_feature_columns, dnn_feature_columns, or both"):
        learn.DNNLinearCombinedClassifier()

    def fitted(make: Any, **more: Any) -> None:
        make(feature_columns=columns(), model_dir=str(tmp_path), **more).fit(input_fn=numbers, steps=1)

    with pytest.raises(ValueError, match="there is no activation 'swish'; there are: relu, tanh, sigmoid"):
        fitted(learn.DNNRegressor, hidden_units=[2], activation_fn="swish")
    with pytest.raises(ValueError, match="there is no optimizer 'Adams'; there are: "):
        fitted(learn.LinearRegressor, optimizer="Adams")
    with pytest.raises(ValueError, match="embedding_lr_multipliers are for embedding columns"):
        fitted(learn.DNNRegressor, hidden_units=[2], embedding_lr_multipliers={columns()[0]: 2.0})
    with pytest.raises(ValueError, match="and no dnn_hidden_units"):
        learn.DNNLinearCombinedRegressor(str(tmp_path), dnn_feature_columns=columns()).fit(input_fn=numbers, steps=1)


def test_data_are_read_and_made_by_name(tmp_path: Path) -> None:
    datasets = learn.datasets
    iris, boston = datasets.load_iris(), datasets.load_dataset("boston")
    assert (iris.data.shape, iris.target.dtype, np.bincount(iris.target).tolist()) == ((150, 4), np.int64, [50] * 3)
    assert (boston.data.shape, boston.target.dtype) == ((506, 13), np.float64)
    # the sums are those of 1.15's files
    assert round(float(iris.data.sum()), 1) == 2078.2
    assert round(float(boston.target.sum()), 1) == 11401.6
    made = datasets.make_dataset("spirals", 101, noise=0.1)
    assert (made.data.shape, np.bincount(made.target).tolist()) == ((101, 2), [51, 50])
    assert made.data[0].round(6).tolist() == [0.206387, 0.789584]  # as 1.15 makes them
    file = tmp_path / "rows.csv"
    file.write_text("".join(f"{number},0\n" for number in range(5)))
    datasets.base.shrink_csv(str(file), 2)
    assert (tmp_path / "rows_small.csv").read_text().split() == ["0,0", "2,0", "4,0"]
    with pytest.raises(ValueError, match="there are no data 'cars'; there are: iris, boston, mnist, dbpedia"):
        datasets.load_dataset("cars")
    with pytest.raises(ValueError, match="there are no made data 'moons'; there are: circles, spirals"):
        datasets.make_dataset("moons")
    with pytest.raises(tf.errors.NotFoundError, match=r"dbpedia_csv\.tar\.gz"):
        datasets.load_dataset("dbpedia")
    with pytest.raises(tf.errors.NotFoundError, match="graphmill downloads nothing; fetch http://x"):
        datasets.base.urlretrieve_with_retry("http://x")


def test_functions_are_called_anew() -> None:
    calls: list[int] = []

    def fails_twice() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise OSError
        return len(calls)

    assert learn.datasets.base.retry(1.0, 8.0)(fails_twice)() == 3
    with pytest.raises(ValueError, match=r"factor must be at least 1; got 0\.5"):
        learn.datasets.base.retry(1.0, 8.0, factor=0.5)


def test_one_number_is_not_split() -> None:
    with tf.variable_scope("s", partitioner=tf.min_max_variable_partitioner(2)):
        assert tf.get_variable("rate", []).name == "s/rate:0"
        assert tf.get_variable("table", [4]).name == "s/table"
