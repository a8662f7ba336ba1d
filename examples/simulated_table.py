"""A small table to try the command line on: writes train.csv, test.csv and their schema simulated.toml."""

from pathlib import Path

import pandas as pd

from dpadmm.datasets import make_demo

for name, seed in (("train.csv", 0), ("test.csv", 1)):
    data = make_demo(n_features=20, n_relevant=4, random_state=seed)
    table = pd.DataFrame(data.X, columns=list(data.feature_names))
    table["label"] = data.y
    table.to_csv(name, index=False)

# The ranges and classes are known from how the table is drawn. Nothing is read from the rows.
lower, upper = data.extras["bounds"]
columns = [f'[columns.{name}]\nkind = "numeric"\nlower = {lower}\nupper = {upper}\n' for name in data.feature_names]
target = '[target]\ncolumn = "label"\nkind = "classes"\nclasses = ["-1", "1"]\n'
Path("simulated.toml").write_text("\n".join([*columns, target]), encoding="utf-8")
