"""The true ε of Chan 2024: what its theorem promises at one setting, and where it does not apply."""

from dpadmm.privacy.accountants import make_accountant
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, HiddenPasses
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.wording import rounded_up
from dpadmm.reproduce.exhibit import Numbers, PrintedTable
from dpadmm.reproduce.verdicts import CONFIRMED

ROWS, DELTA = 48_842, 1e-5
HEAD = ("noise over sensitivity", "the paper's ε", "this library's ε", "no amplification")


def epsilons(noise: float) -> list[str]:
    """ε of one pass over the rows in a secret order; the noise is relative to what replacing a row can change."""
    event = Event((HiddenPasses(Passage(ROWS, 1.0, 1.0, 1.0), 2 * noise),))
    bounds = [
        make_accountant(name).epsilon(event, DELTA, Relation.REPLACE_ONE) for name in ("iteration-paper", "iteration")
    ]
    return [rounded_up(bound) for bound in (*bounds, local_epsilon(noise))]


def local_epsilon(noise: float) -> float:
    """ε of the row's own visit by itself."""
    return gaussian_epsilon(1 / noise, DELTA)


def rows(quick: bool) -> Numbers:
    lines = [[f"{noise:g}", *epsilons(noise)] for noise in ((2.0,) if quick else (1.0, 2.0, 4.0, 8.0, 16.0))]
    evidence = (
        "The theorem holds for the last state and A of full row rank. It publishes no ε: with a tall A, as in the "
        "general lasso with A = [φ; I], or if more than the last state is seen, only the last column is left."
    )
    return {"head": list(HEAD), "rows": lines, "verdict": CONFIRMED, "evidence": evidence}


EXHIBIT = PrintedTable(
    name="chan2024-true-epsilon",
    paper="chan2024",
    number="Theorem 5.1",
    title="what it promises, as ε",
    shows="Divergences of the last state, amplified by the number of iterations; no ε is published.",
    promise="valid",
    privacy="Valid for the last state and A of full row rank.",
    setting=f"One pass over {ROWS:,} rows in a secret random order, δ = 10⁻⁵, ηβ = 1, A = I, exact "
    'numbers. Each row is printed by `python -c "from dpadmm.reproduce.exhibits.chan2024_true_epsilon import epsilons; '
    'print(epsilons(NOISE))"`.',
    head=HEAD,
    rows=rows,
)
