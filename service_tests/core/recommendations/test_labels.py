"""Scores of labels: ridge regression and its penalty against scikit-learn's, row by row left out."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import make_map
from app.core.progress import Progress
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.measuring import MOST_CLASSES, Fold, Labels, Measuring, Shares, linear_score
from app.core.spec import MapSpec
from service_tests.cases import each

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(60, 5))
NUMBERS = ROWS @ RNG.normal(size=5) + 0.5 * RNG.normal(size=60) + 3
CLASSES = np.array(["low", "mid", "high"])[np.digitize(NUMBERS, [1.5, 4.5])]
FOLD = Fold(np.arange(40, 60), np.arange(40), np.zeros(0, np.intp))


def best_model(rows: Any, targets: Any) -> Any:
    """The model of the rows trained with whose penalty has the least squared error of rows that are left out."""
    centred = rows[FOLD.trained] - rows[FOLD.trained].mean(axis=0)
    mean = np.square(centred).sum() / len(FOLD.trained)

    def left_out(model: Any) -> float:
        error = 0.0
        for i in FOLD.trained:
            others = np.setdiff1d(FOLD.trained, i)
            told = model.fit(rows[others], targets[others]).predict(rows[[i]])
            error += float(np.square(told - targets[[i]]).sum())
        return error

    models = (Ridge(alpha=mean * penalty, solver="svd") for penalty in 10.0 ** np.arange(-7, 2.5, 0.5))
    return min(models, key=left_out).fit(rows[FOLD.trained], targets[FOLD.trained])


@pytest.mark.parametrize("labels", [NUMBERS, CLASSES], ids=["numbers", "classes"])
def test_scores_are_those_of_ridge_regression_with_the_best_penalty_of_leaving_one_out(labels: Any) -> None:
    ours = Labels(labels).score(ROWS @ ROWS.T, FOLD)
    targets = labels[:, None] if labels is NUMBERS else (labels[:, None] == np.unique(labels)).astype(float)
    model = best_model(ROWS, targets)
    if labels is NUMBERS:
        error = np.square(model.predict(ROWS[FOLD.measured]).reshape(-1, 1) - targets[FOLD.measured]).mean()
        assert ours == pytest.approx(1 - error / targets.var(), abs=1e-9)
        assert 0.5 < ours < 1
        assert abs(ours - model.score(ROWS[FOLD.measured], targets[FOLD.measured])) < 0.01
        return
    told = np.unique(labels)[model.predict(ROWS[FOLD.measured]).argmax(axis=1)]
    assert ours == (told == labels[FOLD.measured]).mean()
    assert 0.5 < ours < 1


@each("length_scale", [2.0, 1000.0])
@each("sampler", [{"kind": "sobol"}, {"kind": "uploaded_landmarks", "landmarks": ROWS[:12].tolist()}])
def test_a_map_scores_as_its_features_do_even_if_they_hardly_differ(length_scale: float, sampler: Any) -> None:
    members = {"input_dim": 5, "kernel": {"kind": "gaussian", "length_scale": length_scale}, "sampler": sampler}
    spec = MapSpec.model_validate_json(json.dumps(members | ({} if "landmarks" in sampler else {"s": 12})))
    measuring = Measuring(ROWS, Shares(FOLD, (FOLD,)), Labels(NUMBERS), Wanted(24, None), Building(), 1)
    measured: Any = measuring.report(spec, Progress())
    features = make_map(spec).transform(ROWS).astype(np.float64)
    told = best_model(features, NUMBERS[:, None]).predict(features[FOLD.measured]).ravel()
    wanted = 1 - np.square(told - NUMBERS[FOLD.measured]).mean() / NUMBERS.var()
    assert measured["score"] == pytest.approx(wanted, abs=1e-6)


@each(
    "kernel", [{"kind": "gaussian", "length_scale": 2.0}, {"kind": "gaussian", "length_scale": 1e200}, {"kind": "gmm"}]
)
@each("value", [0.3, 1.0])
@each("n_trained", [37, 40])
def test_maps_tell_the_mean_if_all_rows_to_train_with_are_alike(kernel: Any, value: float, n_trained: int) -> None:
    rows = np.where(np.arange(60)[:, None] < 50, value, ROWS)
    fold = Fold(np.arange(n_trained, 60), np.arange(n_trained), np.zeros(0, np.intp))
    spec = MapSpec.model_validate(
        {"input_dim": 5, "kernel": kernel, "sampler": {"kind": "gcws" if kernel["kind"] == "gmm" else "sobol"}, "s": 12}
    )
    measuring = Measuring(rows, Shares(fold, (fold,)), Labels(NUMBERS), Wanted(24, None), Building(), 1)
    measured: Any = measuring.report(spec, Progress())
    error = np.square(NUMBERS[:n_trained].mean() - NUMBERS[n_trained:]).mean()
    assert measured["score"] == pytest.approx(1 - error / NUMBERS.var(), abs=1e-9)
    assert linear_score(rows, Labels(NUMBERS), fold) == pytest.approx(1 - error / NUMBERS.var(), abs=1e-9)


@pytest.mark.parametrize("labels", [NUMBERS, CLASSES], ids=["numbers", "classes"])
def test_a_linear_model_scores_alike_in_all_units_and_on_sparse_rows(labels: Any) -> None:
    """A constant column says nothing, and of two billion columns only those with entries are looked at."""
    told = Labels(labels)
    scaled = ROWS / ROWS[FOLD.trained].std(axis=0)
    score = told.score(scaled @ scaled.T, FOLD)
    for units in ([1e-9, 1, 1e6, 3, 1], [1e-200, 1, 1e200, 1e-310, 3]):
        in_units = np.column_stack([ROWS * units, np.full(60, 7.0)])
        assert linear_score(in_units, told, FOLD) == pytest.approx(score, abs=1e-9)
    rows, columns = np.nonzero(ROWS)
    wide = csr_array((ROWS[rows, columns], (rows, columns * 500_000_000)), shape=(60, 1 << 31))
    assert linear_score(wide, told, FOLD) == pytest.approx(score, abs=1e-9)


def test_labels_of_measured_rows_have_no_say() -> None:
    others = NUMBERS.copy()
    others[FOLD.measured] = RNG.permutation(others[FOLD.measured])
    gram = ROWS @ ROWS.T
    # R² of labels at random: far below 0, as of a model of other rows; were they trained with, it would be above.
    assert Labels(others).score(gram, FOLD) < 0 < Labels(NUMBERS).score(gram, FOLD)


@each(
    ("given", "are_numbers", "classes"),
    [
        (["b", "a", "b"], None, 2),
        ([True, False, True], None, 2),
        ([3, 1, 1, 2], None, 3),
        ([3.0, 1.0, 1.0], None, 2),
        ([3.5, 1.0, 1.0], None, None),
        (list(range(MOST_CLASSES + 1)), None, None),
        ([3, 1, 1, 2], True, None),
        ([3.5, 1.0, 1.0], False, 2),
    ],
)
def test_what_labels_are(given: list[Any], are_numbers: bool | None, classes: int | None) -> None:
    labels = Labels(given, are_numbers)
    assert (labels.classes is None) == (classes is None)
    assert labels.targets.shape == (len(given), classes or 1)


@pytest.mark.parametrize("scale", [2.0**1020, 2.0**-1060])
def test_numbers_of_any_size_are_told_as_well(scale: float) -> None:
    given = np.array([-9.0, 3.5, 8.0, 9.0])
    assert (Labels(scale * given, True).targets == Labels(given, True).targets).all()


@pytest.mark.parametrize(
    ("given", "are_numbers", "words"),
    [
        ([1, 1, 1], None, "all labels are 1"),
        (["a", "b"], True, "some labels are no numbers"),
        ([str(i) for i in range(MOST_CLASSES + 1)], None, "101 classes; 100 are the most"),
    ],
)
def test_labels_that_tell_nothing_are_refused(given: list[Any], are_numbers: bool | None, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Labels(given, are_numbers)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("offset", [1e8, 1.7e9, 1e12])
def test_the_linear_model_does_not_depend_on_where_columns_begin(kind: str, offset: float) -> None:
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(300, 3))
    rows[:, 0] *= max(1, offset / 1e9)
    labels = Labels((rows[:, 0] / np.std(rows[:, 0]) - 2 * rows[:, 1] + 0.1 * rng.normal(size=300)).tolist())
    fold = Fold(np.arange(100), np.arange(100, 300), np.arange(100, 300))
    moved = rows + np.array([offset, 0, 0])
    as_given = csr_array if kind == "sparse" else np.asarray
    wanted = linear_score(rows, labels, fold)
    assert wanted > 0.99
    assert linear_score(as_given(moved), labels, fold) == pytest.approx(wanted, abs=1e-4)
    constant = as_given(moved * [0, 1, 1] + [offset, 0, 0])
    assert linear_score(constant, labels, fold) == pytest.approx(linear_score(rows[:, 1:], labels, fold), abs=1e-9)


def test_rows_of_equal_labels_have_a_score_of_a_usual_size() -> None:
    few = np.zeros(len(ROWS))
    few[FOLD.trained[:2]] = 1.0
    assert -3 < Labels(few, are_numbers=True).score(ROWS @ ROWS.T, FOLD) < 1
