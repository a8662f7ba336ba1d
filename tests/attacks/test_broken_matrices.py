"""Sparse matrices whose index arrays lie about their shape: refused by every method that takes a table, never a crash.

Each batch of tries runs in a process of its own, since what is attacked here may end it.
"""

from __future__ import annotations

import subprocess
import sys

from .campaign import Campaign

CAMPAIGN = Campaign(
    "input",
    "break the index arrays of a sparse matrix, and predict, score, transform or fit with it",
    "predict ended the process (abort, segmentation fault); fit refused",
    60,
    1_500,
)
BATCH = 300
PROGRAM = """
import sys, warnings
import numpy as np
from scipy import sparse
from dpadmm import DPLinearRegression, DPLogisticRegression, DPSearchCV, PrivateQuantileClipper, PrivateSecondMoment
from dpadmm.errors import DpadmmError
warnings.simplefilter("ignore")
first, last = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X = sparse.csr_matrix(np.where(rng.random((40, 6)) < .5, rng.random((40, 6)), 0))
y = np.arange(40) % 2
plain = {"solver": "dp-gd", "steps": 2, "delta": 1e-3, "random_state": 0}
logistic = DPLogisticRegression(1.0, classes=[0, 1], **plain).fit(X, y)
squared = DPLinearRegression(1.0, **plain).fit(X, y)
space = {"alpha": [1e-3, 1e-2], "penalty": ["l1"]}
search = DPSearchCV(DPLogisticRegression(1.0, 1e-3, classes=[0, 1], random_state=0), space).fit(X, y)
own = {"epsilon": 1.0, "delta": 1e-3, "random_state": 0}
clipper = PrivateQuantileClipper((0, 1), quantiles=(0, 0.9), **own).fit(X)
moment = PrivateSecondMoment(**own).fit(X)
METHODS = [logistic.predict, logistic.decision_function, logistic.predict_proba, logistic.predict_log_proba,
           lambda X: logistic.score(X, y), lambda X: squared.score(X, y), squared.predict, search.predict,
           search.predict_proba,
           lambda X: search.score(X, y), clipper.transform, moment.transform, lambda X: logistic.fit(X, y), moment.fit,
           lambda X: search.fit(X, y)]
FORMS = ["csr", "csc", "bsr", "coo", "csr", "csr", "lil", "dok", "dia"]
HUGE = [-1, -2**31, 6, 7, 40, 10**4, 10**6, 2**31 - 1, 2**40, 2**62]

def broken(form, rng):
    table = X.asformat(form).copy()
    kind = rng.choice([np.int32, np.int64, np.uint32, np.uint64])
    how, big = rng.integers(9), int(rng.choice(HUGE))
    if form == "lil":
        i = int(rng.integers(40))
        table.rows[i] = table.rows[i] + [big] if how % 2 else table.rows[i][:-1]
        if how % 2 and how > 2:
            table.data[i] = table.data[i] + [1.0]
        return table
    if form == "dok":
        table._dict[(int(rng.integers(40)), big)] = 1.0
        return table
    if form == "dia":
        table.offsets = table.offsets + big if how % 2 else table.offsets[:-1]
        return table
    names = ["coords"] if form == "coo" else ["indices", "indptr"]
    name = str(rng.choice(names))
    places = (table.row if form == "coo" else getattr(table, name)).astype(np.int64)
    at = int(rng.integers(len(places)))
    if how < 3:
        places[at] = big
    elif how == 3:
        places = places[: int(rng.integers(len(places)))]
    elif how == 4:
        places = np.append(places, [big] * int(rng.integers(1, 50)))
    elif how == 5:
        places = places[::-1].copy()
    elif how == 6:
        table.data = table.data[: int(rng.integers(1, len(table.data)))]
    elif how == 7:
        table._shape = (int(rng.choice([1, 10**6, 2**40])), 6)
    else:
        table._shape = (40, int(rng.choice([0, 1, 5])))
    with np.errstate(all="ignore"):
        places = places.astype(kind)
    if form == "coo":
        table.coords = (places, table.col)
    else:
        setattr(table, name, places)
        table.has_sorted_indices = table.has_canonical_format = True
    return table

for n in range(first, last):
    rng = np.random.default_rng(n)
    form, method = FORMS[n % len(FORMS)], METHODS[int(rng.integers(len(METHODS)))]
    try:
        table = broken(form, rng)
    except Exception:
        continue
    print("try", n, form, flush=True)
    try:
        method(table)
    except (DpadmmError, ValueError):
        continue
    except MemoryError:
        continue
    except Exception as problem:
        print("DEFECT", n, form, type(problem).__name__, flush=True)
"""


def test_broken_matrices_are_refused():
    with CAMPAIGN.begin() as tally:
        numbers = list(tally.each())
        for start in range(0, len(numbers), BATCH):
            ends = str(start), str(min(start + BATCH, len(numbers)))
            ran = subprocess.run(
                [sys.executable, "-c", PROGRAM, *ends], capture_output=True, text=True, timeout=900, check=False
            )
            for line in ran.stdout.splitlines():
                if line.startswith("DEFECT"):
                    tally.defect(line)
            if ran.returncode:
                last = ran.stdout.strip().splitlines()[-1:] or [ran.stderr[-300:]]
                tally.defect(f"the process ended with {ran.returncode} after {last[0]}")
