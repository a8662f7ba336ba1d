"""Tables of persons made up for tests: persons with any number of rows, wild ones among them."""

from __future__ import annotations

import numpy as np

from dpadmm.cells.person_ids import PersonNumbers
from dpadmm.privacy.questions import (
    CentredScore,
    ClippedGradient,
    CountsBelow,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    JointMoments,
    RowMoments,
    SecondMoment,
)
from dpadmm.problem import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.scores import make_score
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.person_rows import PersonRows

CLIP = 0.37


def targets(loss, rng, n):
    if isinstance(loss, Softmax):
        return rng.integers(0, loss.n_classes, n)
    if isinstance(loss, Logistic):
        return rng.choice([-1.0, 1.0], n)
    return rng.normal(size=n) * 10.0 ** rng.integers(-3, 12)


def one_person(loss, rng, size, d, wild=False):
    """Rows and targets of one person: alike, so that they add up, or wild."""
    X = rng.normal(size=(1, d)) * rng.choice([0.1, 1.0, 9.0]) + 0.01 * rng.normal(size=(size, d))
    y = np.repeat(targets(loss, rng, 1), size) if rng.random() < 0.5 else targets(loss, rng, size)
    if wild:
        X = X * 10.0 ** rng.integers(-8, 8, (size, 1))
        X[rng.integers(0, size)] = rng.choice([0.0, np.nan, np.inf, -np.inf, 1e300, -1e300], d)
    return X, y


def table_of(persons, order=None):
    """Rows, targets and the person of each row, of a list of persons; `order` shuffles the rows."""
    X, y = (np.concatenate([each[k] for each in persons]) for k in (0, 1))
    who = np.repeat(np.arange(len(persons)), [len(each[0]) for each in persons])
    return (X, y, who) if order is None else (X[order], y[order], who[order])


def rows_of(X, y, who, persons, loss, rowmap=None, weights=None, score=None, to_csr=lambda X: X):
    rowmap = RowMap(1.0, True) if rowmap is None else rowmap
    numbers = PersonNumbers(who, persons)
    table = PackedRows.of(rowmap, to_csr(X))
    return PersonRows(table, y, loss, rowmap.row_norm, numbers, weights, score)


def asked(rng, loss, d, width, scale=3.0):
    """Every question with places to ask it at: (question, place), `d` raw features and `width` mapped ones."""
    outputs = loss.outputs
    shape = (width,) if outputs == 1 else (width, outputs)
    x, anchor = scale * rng.normal(size=shape), scale * rng.normal(size=shape)
    found = [
        (ClippedGradient(CLIP), (x,)),
        (GradientDifference(2 * CLIP), (x, anchor, float(rng.choice([2.0, 1.0, 0.1])) * CLIP)),
        (JointMoments(0.3, outputs, 0.5), ()),
        (JointMoments(0.3, outputs, 0.5, non_negative=True), ()),
        (RowMoments(0.5, 0.1, 0.1, outputs, 0.5), ()),
        (SecondMoment(), ()),
        (FeatureMoment(), ()),
        (CountsBelow(d, 2), (rng.normal(size=(2, d)),)),
        (CentredScore(0.5), (x,)),
    ]
    if type(loss) is Logistic:
        found.append((FeatureCurvature(), (x, 30.0 * rng.random(width))))
    return found


SCORE = make_score("accuracy")
