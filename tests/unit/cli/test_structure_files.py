"""The readers of headers, edges and groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpadmm.cli.header import column_names
from dpadmm.cli.structure_files import column_groups, read_graph, read_groups
from dpadmm.errors import FileProblem, InvalidData, InvalidParameter
from tests.unit.cli.made_up_tables import SECRET, features, make_frame


def test_header_of_each_kind_of_file(tmp_path: Path) -> None:
    frame = make_frame(3)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        assert column_names(tmp_path / name) == list(frame.columns)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("a.csv", b"a,a\n1,2\n"),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.parquet", SECRET.encode()),
        ("a.csv.gz", SECRET.encode()),
    ],
)
def test_broken_header_is_not_quoted(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidData) as caught:
        column_names(tmp_path / name)
    assert SECRET not in str(caught.value)


def test_header_of_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("")
    for path in (tmp_path / "absent.csv", tmp_path / "a.xlsx", tmp_path):
        with pytest.raises(FileProblem):
            column_names(path)


def test_graph_and_groups(tmp_path: Path) -> None:
    edges, groups = tmp_path / "edges.csv", tmp_path / "groups.csv"
    edges.write_text("# public\nage, married\n\nwork=private,work=state,0.5\n")
    groups.write_text("age,g\nmarried,g\n")
    assert read_graph(edges, features()) == [(0, 3, 1.0), (1, 2, 0.5)]
    assert read_groups(groups, features()) == [[0, 3], [1], [2]]
    assert column_groups(features()) == [[0], [1, 2], [3]]


@pytest.mark.parametrize("line", [SECRET + ",age", "age", "age,married,-1", "age,married,x", "", "a,b,c,d"])
def test_bad_graph_is_not_quoted(tmp_path: Path, line: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(line)
    with pytest.raises(InvalidParameter) as caught:
        read_graph(path, features())
    assert SECRET not in str(caught.value)


def test_an_endless_graph(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("[" * 200_000)
    with pytest.raises(InvalidParameter, match="line 1"):
        read_graph(tmp_path / "edges.csv", features())
    with pytest.raises(FileProblem):
        read_graph(Path("/dev/zero"), features())


def test_absent_graph(tmp_path: Path) -> None:
    with pytest.raises(FileProblem):
        read_graph(tmp_path / "absent.csv", features())
    (tmp_path / "groups.csv").write_text("age\n")
    with pytest.raises(InvalidParameter):
        read_groups(tmp_path / "groups.csv", features())
