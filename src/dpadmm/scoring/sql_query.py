"""`score.sql`: a released model as one query of standard SQL."""

from __future__ import annotations

import numpy as np

from dpadmm.scoring import sql
from dpadmm.scoring.linear_score import REGRESSION, LinearScore
from dpadmm.scoring.raw_inputs import LARGEST_PLAIN, Category, Number

MOST_COLUMNS = 500
"""Raw columns of a query: databases take few thousand columns, and every layer has some."""

MOST_NUMBERS = 20_000
MOST_CLASSES = 100

_HEAD = """\
Predictions of a linear model, for a table with the raw columns the model was trained on.

{promise}

To use it, write the name of your table for my_table and the name of its key column for my_key.
The result has one row for each row of the table: its key, its {scores}, its prediction. Where `dpadmm predict`
refuses a row as invalid (a missing number, say), score and prediction are NULL.{regression}

Dialect: standard SQL with SQRT, double quotes around names and CAST AS DOUBLE PRECISION; tested on SQLite (built with
its mathematical functions) and PostgreSQL. Elsewhere, texts must compare case-sensitively and a backslash in a text
must be a backslash: MySQL needs a binary collation and SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'. Columns of
numbers must have a numeric type, columns of texts a text type. Spaces around a text are cut off; other white space is
not (`dpadmm predict` cuts off both).
{limit}Scores equal those of the model but for the last bits of double precision: databases add in another order.
So do predicted numbers. A predicted class is that of `dpadmm predict`, unless two classes tie but for these bits."""


def fits_databases(model: LinearScore) -> bool:
    """Whether there is a query for this model: not for one too large, or with names or texts SQL cannot hold."""
    texts = [*model.names, *(model.labels or ())]
    for each in model.inputs:
        texts += each.values if isinstance(each, Category) else ()
    small = len(model.inputs) <= MOST_COLUMNS and model.weights.size <= MOST_NUMBERS and model.outputs <= MOST_CLASSES
    return small and all(sql.sayable(text) for text in texts)


def sql_file(model: LinearScore) -> str:
    """The text of `score.sql`."""
    return f"{_head(model)}\nWITH\n{_cells(model)},\n{_sums(model)},\n{_scores(model)}\n{_answer(model)};\n"


def _head(model: LinearScore) -> str:
    plain = any(isinstance(each, Number) for each in model.inputs)
    limit = f"Numbers beyond {LARGEST_PLAIN:g} have no score here: their squares leave double precision.\n"
    scores = "score" if model.outputs == 1 else "scores (score_1 to score_" + str(model.outputs) + ", a class each)"
    regression = "" if model.target_range is None else f"\n{REGRESSION}"
    promise = "\n".join(model.promise.lines)
    said = _HEAD.format(promise=promise, scores=scores, limit=limit if plain else "", regression=regression)
    return "\n".join(f"-- {line}".rstrip() for line in said.splitlines())


def _cells(model: LinearScore) -> str:
    """Each raw cell as a number."""
    made = [f"{each.sql_cell('t.' + sql.name(each.name))} AS x{i}" for i, each in enumerate(model.inputs, 1)]
    columns = ",\n           ".join(["t.my_key AS row_key", *made])
    return f"cells AS (\n    SELECT {columns}\n    FROM my_table AS t\n)"


def _sums(model: LinearScore) -> str:
    """The weighted sum of each output, and the squared norm of the row."""
    sums = [f"{_weighted(model, output)}\n           AS sum_{output + 1}" for output in range(model.outputs)]
    squares = [each.sql_square(f"x{i}") for i, each in enumerate(model.inputs, 1)]
    squares += ["1.0E0"] if model.intercept else []
    square = sql.total(squares, " " * 15) + "\n           AS squared_norm"
    columns = ",\n           ".join(["row_key", *sums, square])
    return f"sums AS (\n    SELECT {columns}\n    FROM cells\n)"


def _weighted(model: LinearScore, output: int) -> str:
    column, at, terms = model.weights[:, output], 0, []
    for i, each in enumerate(model.inputs, 1):
        terms.append(each.sql_term(f"x{i}", column[at : at + each.width]))
        at += each.width
    if model.intercept:
        terms.append(sql.number(column[-1]))
    return sql.total([term for term in terms if term is not None], " " * 15)


def _scores(model: LinearScore) -> str:
    """Sums scaled by the row's own factor: rows longer than the declared norm are scaled down to it."""
    square, norm = sql.number(float(np.square(model.row_norm))), sql.number(model.row_norm)
    scaled = (
        f"CASE WHEN squared_norm <= {square} THEN {{sum}} "
        f"WHEN squared_norm > {square} THEN {{sum}} * ({norm} / SQRT(squared_norm)) END"
    )
    made = [f"{scaled.format(sum=f'sum_{k}')} AS {_score_name(model, k)}" for k in range(1, model.outputs + 1)]
    return "scores AS (\n    SELECT " + ",\n           ".join(["row_key", *made]) + "\n    FROM sums\n)"


def _score_name(model: LinearScore, number: int) -> str:
    return "score" if model.outputs == 1 else f"score_{number}"


def _answer(model: LinearScore) -> str:
    scores = [_score_name(model, k) for k in range(1, model.outputs + 1)]
    return (
        "SELECT "
        + ",\n       ".join(["row_key", *scores, f"{_prediction(model, scores)} AS prediction"])
        + ("\nFROM scores")
    )


def _prediction(model: LinearScore, scores: list[str]) -> str:
    if model.target_range is not None:
        lower, upper = model.target_range
        half = (upper - lower) / 2
        return f"{sql.number(half)} * {scores[0]} + {sql.number(lower)} + {sql.number(half)}"
    labels = [sql.label(value) for value in model.labels or ()]
    if len(scores) == 1:
        return f"CASE WHEN score > 0 THEN {labels[1]} WHEN score <= 0 THEN {labels[0]} END"
    # The first of the largest: no earlier one is the largest, so it need only be compared with later ones.
    whens = [
        "WHEN " + " AND ".join(f"{score} >= {later}" for later in scores[k + 1 :] or [score]) + f" THEN {labels[k]}"
        for k, score in enumerate(scores)
    ]
    return "CASE " + "\n            ".join(whens) + " END"
