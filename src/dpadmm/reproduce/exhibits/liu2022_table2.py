"""Table II of Liu 2022: data sets and parameters, as counted here."""

import numpy as np

from dpadmm.datasets import load
from dpadmm.reproduce.exhibit import Numbers, PrintedTable
from dpadmm.reproduce.liu2022_settings import TABLE_II
from dpadmm.reproduce.verdicts import CONFIRMED, PART_CONFIRMED

HEAD = (
    "table",
    "rows",
    "training rows, printed",
    "features",
    "positive",
    "mini-batch",
    "λ₁",
    "λ₂",
    "δ = 5·10⁻⁴ over 1/n",
)


def rows(quick: bool) -> Numbers:
    lines, different = [], []
    for name, (train, test, batch, lambda_1, lambda_2) in TABLE_II.items():
        data = load(name, download=False)
        own = data.X.shape[0]
        if own != train + test:
            different.append(name)
        share = float(np.mean(data.y > 0))
        sizes = [f"{own:,}", f"{train:,}", str(data.X.shape[1]), f"{share:.1%}"]
        lines.append([name, *sizes, str(batch), f"{lambda_1:g}", f"{lambda_2:g}", f"{5e-4 * train:.3g}"])
    evidence = "Sizes agree: " + ("on all tables." if not different else f"on all tables but {', '.join(different)}.")
    evidence += (
        " The paper halves the training file of w8a. w8a and bio_train are so unbalanced that a constant answer is "
        "right for 97 % and 99 % of the rows: accuracy says little there, AUC more. δ is above 1/n everywhere."
    )
    return {
        "head": list(HEAD),
        "rows": lines,
        "verdict": PART_CONFIRMED if different else CONFIRMED,
        "evidence": evidence,
    }


EXHIBIT = PrintedTable(
    name="liu2022-table2",
    paper="liu2022",
    number="Table II",
    title="data sets and parameters",
    shows="Sizes of four tables, mini-batches and regularisation.",
    promise="none",
    privacy="A δ above 1/n promises next to nothing: publishing nδ rows at random keeps it.",
    setting="Counted in the files of the data sets.",
    head=HEAD,
    rows=rows,
    reads=tuple(TABLE_II),
)
