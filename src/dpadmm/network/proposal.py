"""What owners approve: one model of all their rows, by public numbers alone, from which each party makes the plan."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpadmm._version import __version__
from dpadmm.declare.declaration import Declaration
from dpadmm.declare.recipe import Recipe
from dpadmm.declare.target import Target
from dpadmm.errors import InvalidParameter, PrivacyError, UnsupportedProblem
from dpadmm.estimators.loading import MODELS
from dpadmm.network.encoding import digest
from dpadmm.network.roster import Roster
from dpadmm.privacy.accountants import make_accountant
from dpadmm.privacy.events import Event
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.sampling import Everything
from dpadmm.stored_json import entries, exactly, flag, reading, text, unreadable, whole
from dpadmm.tables.encode import Policy
from dpadmm.tables.schema import Schema

PROTOCOL = 1
LOCAL = ("ledger", "dataset", "random_state", "verbose", "n_rows", "arithmetic")
"""Parameters of a model that are each party's own, or the same in every federation."""


class ProposalRefused(PrivacyError):
    """A proposal that a party does not carry out, or not in this form."""


@dataclass(frozen=True)
class Proposal:
    """A model to be trained on the rows of all silos.

    Parameters
    ----------
    roster : Roster
        The parties, and how many may collude.
    model : str
        The name of an estimator.
    parameters : str
        Its public parameters as JSON.
    n_rows : int
        The declared total of rows. How many each silo has is told to nobody.
    n_features : int
        Of each table.
    planned_silos : int
        S of the first roster of this run. A later roster may have fewer silos; the plan stays what it was.
    spares : int
        How many questions more than needed are planned, of each kind that is asked more than once: after an epoch has
        failed, questions are repeated at their cost.
    seeded : bool
        Whether the noise can be repeated, for tests: then nothing is private.
    nonce : str
        32 hexadecimal digits, so that no two proposals are the same.
    continues : str
        Digest of the proposal whose run goes on with fewer silos; empty for the first of a run.
    schema : str
        TOML by which owners read their tables; empty where they pass arrays.
    version : str
        Of the library: silos of another version refuse, because they might compute another plan.
    """

    roster: Roster
    model: str
    parameters: str
    n_rows: int
    n_features: int
    planned_silos: int
    spares: int
    seeded: bool
    nonce: str
    continues: str = ""
    schema: str = ""
    version: str = __version__

    def __post_init__(self) -> None:
        began_with_more = bool(self.continues) and self.planned_silos > self.roster.size
        if not (began_with_more or self.planned_silos == self.roster.size):
            raise InvalidParameter(
                f"a plan for {self.planned_silos} silos and a roster of {self.roster.size}",
                "equal numbers, or a run that began with more silos",
                "make the proposal anew",
            )

    @classmethod
    def of(
        cls,
        estimator: Any,
        roster: Roster,
        n_rows: int,
        n_features: int,
        spares: int = 0,
        seeded: bool = False,
        schema: Schema | None = None,
    ) -> Proposal:
        """To train `estimator`; refused if a parameter cannot be told to others."""
        return cls(
            roster,
            type(estimator).__name__,
            _stored_parameters(estimator),
            n_rows,
            n_features,
            roster.size,
            spares,
            seeded,
            "0" * 32 if seeded else secrets.token_hex(16),
            schema="" if schema is None else schema.to_toml(),
        )

    def continued(self, without: set[str]) -> Proposal:
        """The same run, after some silos have left for good."""
        return replace(self, roster=self.roster.without(without), continues=self.run.hex())

    @cached_property
    def digest(self) -> bytes:
        """What is approved; plan and row map are included, as this party computes them."""
        return digest(
            "proposal",
            PROTOCOL,
            self.roster.digest,
            self.model,
            self.parameters,
            (self.n_rows, self.n_features, self.planned_silos, self.spares, int(self.seeded)),
            (self.nonce, self.continues, self.schema, self.version),
            bytes.fromhex(self.plan.digest),
        )

    @property
    def run(self) -> bytes:
        """What is charged once, whatever epochs it takes: the digest of the first proposal."""
        return bytes.fromhex(self.continues) if self.continues else self.digest

    # -- what follows from it -------------------------------------------------------------------------------------

    @cached_property
    def estimator(self) -> Any:
        """The model, not fitted."""
        if self.model not in MODELS:
            raise unreadable("a proposal", "of an unknown model")
        with reading("a proposal"):
            return MODELS[self.model](**json.loads(self.parameters))

    @cached_property
    def target(self) -> Target:
        """What is public about the labels."""
        if getattr(self.estimator, "classes", ()) is None:
            raise InvalidParameter(
                "a federated classifier without classes",
                "classes=[...]: no party may read them from the rows of all",
                "declare the classes",
            )
        target: Target = self.estimator.declare_target(np.empty(0))
        return target

    @cached_property
    def table_schema(self) -> Schema:
        """How each owner reads its table."""
        if not self.schema:
            raise ProposalRefused(
                "Got a proposal without a schema for a table with named columns. Expected a schema, by which all "
                "owners read their tables alike. Ask for a proposal made with --schema."
            )
        schema = Schema.from_toml(self.schema)
        if schema.person is not None:
            raise ProposalRefused(
                "Got a schema that names a column of persons. Expected one without: owners protect single rows, as a "
                "person's rows may lie with several of them. Remove the line that begins with person."
            )
        return schema

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if a schema gives them."""
        return self.table_schema.feature_names if self.schema else None

    @property
    def policy(self) -> Policy:
        """What becomes of rows that break the declaration."""
        return "zero" if self.estimator.invalid_rows == "zero" else "error"

    @cached_property
    def declaration(self) -> Declaration:
        """All public choices of the fit."""
        declared = self.estimator.declaration(self.n_rows, self.n_features, self.target)
        return adapted(declared, self)

    @cached_property
    def recipe(self) -> Recipe:
        """Problem, solver and certified plan."""
        solver = self.declaration.solver_class
        if solver.hidden or solver.samples:
            raise _only_full_data()
        recipe = self.declaration.recipe
        if any(type(query.sampler) is not Everything for query in recipe.plan.queries):
            raise _only_full_data()
        return recipe

    @property
    def plan(self) -> Plan:
        """The plan of the first roster, spares included: what each ledger is charged."""
        return self.recipe.plan

    @property
    def asked_plan(self) -> Plan:
        """The plan without its spares: what the solver asks."""
        queries = (replace(q, count=q.count - self.spares) if q.count > 1 else q for q in self.plan.queries)
        return replace(self.plan, queries=tuple(queries))

    @cached_property
    def epsilon_if_all_collude(self) -> float:
        """ε of the rows of one silo when all other silos collude: its own share of the noise is all that is left.

        The first roster of a run had the most silos, and so the smallest shares.
        """
        plan, shrink = self.plan, 1.0 / math.sqrt(self.planned_silos - self.roster.colluding)
        parts = (replace(part, noise_multiplier=part.noise_multiplier * shrink) for part in plan.event.parts)
        delta = plan.arithmetic.delta_for_noise(plan.budget.delta)
        return float(make_accountant(plan.accountant).epsilon(Event(tuple(parts)), delta, plan.budget.relation))

    # -- as a file ------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "protocol": PROTOCOL,
            "roster": self.roster.to_dict(),
            "model": self.model,
            "parameters": json.loads(self.parameters),
            "n_rows": self.n_rows,
            "n_features": self.n_features,
            "planned_silos": self.planned_silos,
            "spares": self.spares,
            "seeded": self.seeded,
            "nonce": self.nonce,
            "continues": self.continues,
            "schema": self.schema,
            "version": self.version,
            "plan_digest": self.plan.digest,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Proposal:
        """The proposal that `to_dict` wrote, its plan computed here; refused where the plans differ."""
        exactly(fields, "a proposal", KEYS)
        if fields["protocol"] != PROTOCOL or fields["version"] != __version__:
            raise ProposalRefused(
                "Got a proposal of another version of dpadmm. Expected one of this version, because another might "
                f"compute another plan. Install one version at all parties; this is {__version__}."
            )
        with reading("a proposal"):
            made = cls(
                Roster.from_dict(fields["roster"]),
                text(fields["model"], "the model of a proposal"),
                _canonical(entries(fields["parameters"], "the parameters of a proposal")),
                whole(fields["n_rows"], "the rows of a proposal"),
                whole(fields["n_features"], "the features of a proposal"),
                whole(fields["planned_silos"], "the silos of a proposal"),
                whole(fields["spares"], "the spares of a proposal", least=0),
                flag(fields["seeded"], "what is seeded in a proposal"),
                _hexadecimal(fields["nonce"], 32),
                _hexadecimal(fields["continues"], 64),
                text(fields["schema"], "the schema of a proposal"),
                text(fields["version"], "the version of a proposal"),
            )
        if made.plan.digest != fields["plan_digest"]:
            raise ProposalRefused(
                "Got a proposal whose plan is not the one computed here from the same public numbers. Expected equal "
                "plans. Compare the versions of dpadmm, NumPy and SciPy at both parties; nothing was approved."
            )
        return made


KEYS = (
    *("protocol", "roster", "model", "parameters", "n_rows", "n_features", "planned_silos", "spares", "seeded"),
    *("nonce", "continues", "schema", "version", "plan_digest"),
)


def adapted(declared: Declaration, proposal: Proposal) -> Declaration:
    """The same choices for sums that many owners form: exact, with spares, and more noise than one owner would add."""
    first = proposal.planned_silos
    surplus = math.sqrt(first / (first - proposal.roster.colluding))
    return replace(declared, arithmetic="exact", counted=False, spares=proposal.spares, surplus=surplus)


def _only_full_data() -> UnsupportedProblem:
    return UnsupportedProblem(
        "a solver that reads mini-batches, or visits row after row, for rows of many owners",
        "one that reads all rows at each step",
        "use solver='auto' or 'full-admm'",
    )


def _stored_parameters(estimator: Any) -> str:
    if type(estimator).__name__ not in MODELS:
        raise UnsupportedProblem(
            f"a {type(estimator).__name__} for rows of many owners", f"one of {', '.join(MODELS)}", "fit one of these"
        )
    parameters = estimator.get_params(deep=False)
    if parameters.get("n_rows") is not None:
        raise InvalidParameter("n_rows for rows of many owners", "n_rows of the federation alone", "drop n_rows here")
    if parameters.get("class_weight") is not None:
        raise InvalidParameter(
            "class_weight for rows of many owners", "none: exact arithmetic has no weights", "drop class_weight"
        )
    if parameters.get("ledger") is not None or parameters.get("random_state") is not None:
        raise InvalidParameter(
            "ledger or random_state for rows of many owners",
            "the federation's own: each owner keeps its ledger and its secrets",
            "pass ledgers, or a seed, to the federation",
        )
    return _canonical({name: value for name, value in parameters.items() if name not in LOCAL})


def _canonical(parameters: Mapping[str, Any]) -> str:
    try:
        return json.dumps(parameters, sort_keys=True, default=_plain, allow_nan=False)
    except (TypeError, ValueError):
        raise UnsupportedProblem(
            "a model with parameters that cannot be written down, such as a smoother or a private step",
            "numbers, names and lists",
            "pass smoothing as a number, and declare what a private step would learn",
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _hexadecimal(value: Any, digits: int) -> str:
    words = text(value, "a proposal")
    if words and (len(words) != digits or not set(words) <= set("0123456789abcdef")):
        raise unreadable("a proposal", f"without {digits} hexadecimal digits where they belong")
    return words
