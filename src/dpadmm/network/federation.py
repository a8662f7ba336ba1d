"""`Federation`: the tables of many owners, passed to `fit` in place of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.declare.declaration import Declaration
from dpadmm.errors import InvalidParameter, PromiseBroken, QueryRefused
from dpadmm.network.coordinator import Coordinator, Observer
from dpadmm.network.federated_oracle import FederatedOracle
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.owner_table import OwnerTable
from dpadmm.network.proposal import Proposal, adapted
from dpadmm.network.roster import Roster
from dpadmm.network.signing import Signer
from dpadmm.network.silo import Silo
from dpadmm.network.transports.base import Transport
from dpadmm.network.transports.embedded import EmbeddedTransport, Weather
from dpadmm.privacy.assumptions import Assumption, assumed
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.questions import At, Question, Space
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.wording import rounded_up
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.lattice_sum import Sum
from dpadmm.rows.protocol import Rows

Table = tuple[Any, Any]
Connect = Callable[[Proposal], tuple[Coordinator, Transport]]


class Federation:
    """Rows of many owners, of which nothing leaves them but masked and noised sums.

    Make one with `embedded`, and pass it to `fit` of an estimator in place of X and y.

    Parameters
    ----------
    roster : Roster
        Who takes part, and how many may collude.
    n_rows : int
        The declared total of rows: public.
    n_features : int
        Of each table.
    connect : callable
        Reaches the silos of a proposal.
    spares : int
        See `Proposal`.
    seeded : bool
        Whether the noise can be repeated.
    proposal : Proposal, optional
        That the owners approved already; only its model is then fitted.

    Attributes
    ----------
    proposal : Proposal or None
        Of the last fit.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import DPLogisticRegression
    >>> from dpadmm.network import Federation
    >>> rng = np.random.default_rng(0)
    >>> tables = [(X := rng.uniform(-1, 1, (n, 3)), (X[:, 0] > 0).astype(int)) for n in (900, 700, 400)]
    >>> federation = Federation.embedded(tables, colluding=1, seed=0)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(federation)
    >>> X, y = tables[0]
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        roster: Roster,
        n_rows: int,
        n_features: int,
        connect: Connect,
        spares: int = 0,
        seeded: bool = False,
        proposal: Proposal | None = None,
    ) -> None:
        self.roster, self.n_rows, self.n_features = roster, n_rows, n_features
        self._connect, self._spares, self._seeded = connect, spares, seeded
        self._made, self.proposal = proposal, proposal

    @classmethod
    def embedded(
        cls,
        tables: Sequence[Table] | Mapping[str, Table],
        colluding: int = 1,
        n_rows: int | None = None,
        ledgers: Mapping[str, tuple[Ledger, str]] | None = None,
        spares: int = 0,
        seed: int | None = None,
        weather: Weather | None = None,
        patience: float = 3600.0,
        observe: Observer = lambda exchanged: None,
    ) -> Federation:
        """All silos in this process, each with its own keys: to try what owners would do, as private as it would be.

        Whoever runs the process sees all rows. In earnest each owner runs `dpadmm silo serve` (docs/deployment.md).

        Parameters
        ----------
        tables : sequence of (X, y), or mapping from names
            One for each owner.
        colluding : int
            How many owners may collude, with the coordinator or with each other: 1 to one less than there are.
        n_rows : int, optional
            The declared total of rows; by default what it is.
        ledgers : mapping of name to (Ledger, dataset), optional
            Who pays for the rows of a silo.
        spares : int
            How many questions of a kind may be repeated after a failed epoch.
        seed : int, optional
            Makes the fit repeatable and NOT private.
        weather : Weather, optional
            How bad the simulated network is.
        patience : float
            Seconds of the simulation to wait for silos.
        observe : callable
            Told of each exchange.
        """
        named = _named(tables)
        signers = {name: _signer(seed, name) for name in (*named, "coordinator")}
        roster = Roster({name: signers[name].public for name in named}, colluding, signers["coordinator"].public)
        sizes = [_size(X) for X, _ in named.values()]

        def connect(proposal: Proposal) -> tuple[Coordinator, Transport]:
            silos = [
                Silo(name, signers[name], OwnerTable(X, y), budget=_budget(ledgers, name), seed=seed)
                for name, (X, y) in named.items()
            ]
            for silo in silos:
                silo.approve(proposal)
            transport = EmbeddedTransport({silo.name: silo.answer for silo in silos}, weather)
            return Coordinator(
                proposal, signers["coordinator"], transport, patience=patience, observe=observe
            ), transport

        total = sum(rows for rows, _ in sizes) if n_rows is None else n_rows
        return cls(roster, total, sizes[0][1], connect, spares, seeded=seed is not None)

    @property
    def empty_twin(self) -> Any:
        """A table of as many features, and no row."""
        names = None if self._made is None else self._made.feature_names
        if names is None:
            return np.empty((0, self.n_features))
        import pandas as pd

        return pd.DataFrame(columns=list(names))

    def for_model(self, estimator: Any, y: Any = None) -> FederatedTable:
        """What `fit` sees."""
        if y is not None:
            raise InvalidParameter("y beside a federation", "no y: owners keep their labels", "drop y")
        made = Proposal.of(estimator, self.roster, self.n_rows, self.n_features, self._spares, self._seeded)
        self.proposal = made if self._made is None else approved(self._made, made)
        return FederatedTable(self.proposal, self._connect)


class FederatedTable:
    """A federation and a model to be fitted to it: public numbers, and a way to ask."""

    is_sparse = False
    place = "of many owners"

    def __init__(self, proposal: Proposal, connect: Connect) -> None:
        self._proposal, self._connect = proposal, connect
        self.n_rows, self.n_features = proposal.n_rows, proposal.n_features

    def labels(self, needed: bool) -> NDArray[Any]:
        """None: classes are declared."""
        _ = self._proposal.target
        return np.empty(0)

    def adapted(self, declared: Declaration) -> Declaration:
        """The same choices for sums of many owners."""
        return adapted(declared, self._proposal)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What holds of the parties, and what remains if all others collude."""
        roster = self._proposal.roster
        return (
            assumed(
                "owners-collude-at-most",
                silos=roster.size,
                colluding=roster.colluding,
                epsilon=rounded_up(self._proposal.epsilon_if_all_collude),
            ),
            assumed("owners-rows-declared"),
        )

    def rows(self, plan: Plan) -> FederatedRows:
        """What stands where rows would."""
        return FederatedRows(self._proposal, self._connect)


class FederatedRows:
    """Stands where the rows of a fit would: none is here. It brings an oracle of its own."""

    def __init__(self, proposal: Proposal, connect: Connect) -> None:
        self._proposal, self._connect = proposal, connect
        self.n_rows = proposal.n_rows

    @property
    def space(self) -> Space:
        shape = self._proposal.declaration.problem.shape
        return Space(shape, shape[0])

    @property
    def seeded(self) -> bool:
        return self._proposal.seeded

    def open(self, plan: Plan) -> FederatedOracle:
        """Silos that are asked together, by the plan that all of them approved."""
        if plan.digest != self._proposal.plan.digest:
            raise PromiseBroken("Got another plan than was proposed. Expected that of the owners.")
        self._coordinator, self._transport = self._connect(self._proposal)
        return FederatedOracle(self._proposal, self._coordinator)

    def close(self) -> None:
        """All was asked."""
        self._coordinator.close()
        self._transport.close()

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        raise _nobody_here()

    def transformed(self, matrix: Any) -> Rows:
        raise _nobody_here()

    def remapped(self, rowmap: RowMap) -> Rows:
        raise _nobody_here()


def _nobody_here() -> QueryRefused:
    return QueryRefused(
        "Got a question to rows of many owners that only one owner of all rows could answer. Expected a fit. Searches, "
        "audits and private preparation need all rows in one place."
    )


def approved(proposal: Proposal, wanted: Proposal) -> Proposal:
    """The proposal that was approved, if it is of this model."""
    if (proposal.model, proposal.parameters) != (wanted.model, wanted.parameters):
        raise InvalidParameter(
            "another model than the owners approved", "the model of the proposal", "fit `proposal.estimator`"
        )
    return proposal


def _named(tables: Sequence[Table] | Mapping[str, Table]) -> dict[str, Table]:
    named = dict(tables) if isinstance(tables, Mapping) else {f"silo-{k + 1}": each for k, each in enumerate(tables)}
    if not all(isinstance(table, (tuple, list)) and len(table) == 2 for table in named.values()):
        raise InvalidParameter("tables that are not pairs", "(X, y) for each owner", "pass [(X1, y1), (X2, y2), ...]")
    return named


def _size(X: Any) -> tuple[int, int]:
    shape = getattr(X, "shape", None) or np.shape(X)
    if len(shape) != 2:
        raise InvalidParameter("a table that has not rows and columns", "two dimensions", "pass X of each owner")
    return int(shape[0]), int(shape[1])


def _signer(seed: int | None, name: str) -> Signer:
    from dpadmm.network.encoding import digest

    return Signer.generate() if seed is None else Signer(digest("signer", seed, name))


def _budget(ledgers: Mapping[str, tuple[Ledger, str]] | None, name: str) -> OwnerBudget:
    if ledgers is None:
        return OwnerBudget()
    ledger, dataset = ledgers[name]
    return OwnerBudget(ledger, dataset)
