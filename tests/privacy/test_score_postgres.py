"""`score.sql` on PostgreSQL answers as `score.py` does, for columns of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpadmm.scoring import Category, LinearScore, Number, Promise, Ranged, YesNo, score_files

from .ledger_places import new_database, postgres_server

INPUTS = (
    Ranged('a"ge', 0.0, 73.0, 40.0),
    Ranged("decimal", -1.5, 2.0),
    YesNo("well"),
    YesNo("truth", True),
    Category("wo'rk", ("a", "b\\", "'); DROP TABLE people; --"), True, "a"),
    Category("size", (1, 2.5)),
    Category("flag", (True, False)),
    Number("plain"),
)
TYPES = ("integer", "numeric", "text", "boolean", "text", "double precision", "text", "double precision")
ANSWERS: tuple[dict[str, Any], ...] = (
    {"labels": ["n'o", "ye\\s"]},
    {"labels": [1, 2, 3]},
    {"labels": [True, False]},
    {"labels": [0.5, 1e-7]},
    {"labels": None, "target_range": (-3.0, 7.0)},
)


def people(rows: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    words: list[Any] = ["a", "b\\", "'); DROP TABLE people; --", None, "zz"]
    made: list[tuple[Any, ...]] = [
        (
            int(rng.integers(-5, 90)),
            round(float(rng.normal(0, 2)), 4),
            ["yes", "No ", "t", "f", "?"][rng.integers(5)],
            bool(rng.integers(2)),
            words[rng.integers(5)],
            [1.0, 2.5, 3.0][rng.integers(3)],
            ["true", "0", "x"][rng.integers(3)],
            float(rng.normal(0, 3)),
        )
        for _ in range(rows)
    ]
    odd = [(None, *made[0][1:]), *((*made[0][:7], cell) for cell in (None, float("nan"), float("inf"), 1e160))]
    return made + odd


def test_the_query_answers_as_the_program_does() -> None:
    rng = np.random.default_rng(1)
    rows = people(200)
    columns = ['"' + each.name.replace('"', '""') + '"' for each in INPUTS]
    kinds = ", ".join(f"{name} {kind}" for name, kind in zip(columns, TYPES, strict=True))
    with postgres_server() as address:
        import psycopg

        with psycopg.connect(new_database(address)) as place:
            place.execute(f"CREATE TABLE people (number integer, {kinds})".encode())
            stored = [(number, *row) for number, row in enumerate(rows)]
            with place.cursor() as cursor:
                cursor.executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * len(stored[0]))})".encode(), stored)
            for answer in ANSWERS:
                outputs = 3 if answer["labels"] and len(answer["labels"]) > 2 else 1
                weights = rng.normal(size=(sum(each.width for each in INPUTS) + 1, outputs))
                promise = Promise(1.0, 1e-6, "replace-one", False, "0" * 64)
                fields = {"row_norm": 1.0, "intercept": True, "target_range": None, "promise": promise, **answer}
                texts = score_files(LinearScore(INPUTS, weights, **fields))
                query = texts["score.sql"].replace("FROM my_table AS t", "FROM people AS t").replace("my_key", "number")
                with place.cursor() as cursor:
                    found = sorted(cursor.execute(query.encode()).fetchall())
                require_alike(found, rows, texts["score.py"])
            assert place.execute("SELECT count(*) FROM people").fetchone() == (len(rows),)


def require_alike(found: list[tuple[Any, ...]], rows: list[tuple[Any, ...]], program: str) -> None:
    score: dict[str, Any] = {"__name__": "score"}
    exec(compile(program, "score.py", "exec"), score)
    scores, predictions = score["scores"](rows), score["predict"](rows)
    scores[-1] = predictions[-1] = None  # beyond 1e150 there is no score in SQL, as the file says
    assert sum(each is None for each in scores) > 10
    for row, wanted, prediction in zip(found, scores, predictions, strict=True):
        if wanted is None:
            assert set(row[1:]) == {None}
            continue
        np.testing.assert_allclose(np.array(row[1:-1], dtype=float), wanted, rtol=1e-12, atol=1e-12)
        exact = score["TARGET_RANGE"] is None
        assert row[-1] == prediction if exact else float(row[-1]) == pytest.approx(prediction, rel=1e-12)
