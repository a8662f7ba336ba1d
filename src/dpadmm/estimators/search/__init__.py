"""Private hyper-parameter search: the best of a secret random number of private trials.

| file | idea |
|---|---|
| `candidates.py` | what may be tried: a finite public list |
| `row_split.py` | which rows train and which judge, decided without looking at them |
| `trial.py` | one run: a private fit and a private score on other rows |
| `best_trial.py` | which trials are made, and the best of them |
| `winner_methods.py` | what a fitted search does as its winner does |
| `search.py` | `DPSearchCV` |
"""

from dpadmm.estimators.search.search import DPSearchCV

__all__ = ["DPSearchCV"]
