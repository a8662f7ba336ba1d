"""PostgreSQL: nothing may swallow an entry, a server that dies loses no confirmed charge, no password is ever shown."""

from __future__ import annotations

import pickle
import traceback

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpadmm import Budget, DPLogisticRegression, Ledger
from dpadmm.errors import DpadmmError, FileProblem
from dpadmm.preparation import PrivateQuantileClipper
from dpadmm.privacy.ledger import verify
from dpadmm.privacy.ledger.entries import Entry
from dpadmm.privacy.ledger.postgres import PostgresStore
from dpadmm.privacy.server_address import Address, hidden, is_address

from .ledger_places import SMALL, new_database, postgres_server

SECRET = "s3cr3t-Pa55"


@pytest.fixture(scope="module")
def server():
    with postgres_server() as address:
        yield address


@pytest.fixture
def place(server):
    place = new_database(server)
    Ledger.create(place).set_limit("census", Budget(3.0, 1e-5), owner="Ada")
    return place


@pytest.fixture
def connection(place):
    import psycopg

    with psycopg.connect(place, autocommit=True) as connection:
        yield connection


NOTHING = "CREATE FUNCTION thief() RETURNS trigger LANGUAGE plpgsql AS "
SWALLOWERS = {
    "a rule": "CREATE RULE thief AS ON INSERT TO dpadmm_ledger DO INSTEAD NOTHING",
    "a rule beside": "CREATE RULE thief AS ON INSERT TO dpadmm_ledger DO ALSO SELECT 1",
    "a trigger": NOTHING + "$$ BEGIN RETURN NULL; END $$;"
    "CREATE TRIGGER thief BEFORE INSERT ON dpadmm_ledger FOR EACH ROW EXECUTE FUNCTION thief()",
    "a changing trigger": NOTHING + "$$ BEGIN NEW.text := 'x'; RETURN NEW; END $$;"
    "CREATE TRIGGER thief BEFORE INSERT ON dpadmm_ledger FOR EACH ROW EXECUTE FUNCTION thief()",
    "a late trigger": NOTHING + "$$ BEGIN RETURN NULL; END $$;"
    "CREATE CONSTRAINT TRIGGER thief AFTER INSERT ON dpadmm_ledger DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION thief()",
    "row security": "ALTER TABLE dpadmm_ledger ENABLE ROW LEVEL SECURITY;"
    "CREATE POLICY thief ON dpadmm_ledger USING (sequence < 2)",
    "a table that is not kept": "ALTER TABLE dpadmm_ledger SET UNLOGGED",
    "another guard": "CREATE OR REPLACE FUNCTION dpadmm_ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql "
    "AS $$ BEGIN RETURN OLD; END $$",
    "a child": "CREATE TABLE heir () INHERITS (dpadmm_ledger)",
    "a column": "ALTER TABLE dpadmm_ledger ADD COLUMN more text DEFAULT 'x'",
    "a second ledger": "CREATE SCHEMA other; CREATE TABLE other.dpadmm_ledger (sequence bigint, text text, hash text)",
}


@pytest.mark.parametrize("what", SWALLOWERS)
def test_whatever_could_swallow_an_entry_is_refused(place, connection, what):
    ledger = Ledger(place)
    ledger.reserve("census", SMALL)
    connection.execute(SWALLOWERS[what])
    for use in (lambda: ledger.reserve("census", SMALL), lambda: Ledger(place)):
        with pytest.raises(FileProblem, match="a ledger in which"):
            use()
    assert not verify(place).ok
    assert connection.execute("SELECT count(*) FROM dpadmm_ledger").fetchone()[0] <= 3


@pytest.mark.parametrize("what", ["a rule", "a trigger", "a changing trigger"])
def test_what_comes_between_the_look_and_the_entry_is_noticed_too(place, connection, what):
    def write():
        with Ledger(place)._store.writing() as log:
            # Gives back the locks of the first look.
            log.connection.connection.commit()
            connection.execute(SWALLOWERS[what])
            log.append(Entry(3, "{}", "0"))

    with pytest.raises(FileProblem, match=r"look for|were changed"):
        write()


def test_a_search_path_does_not_lead_elsewhere(place, connection):
    connection.execute("CREATE SCHEMA evil; CREATE TABLE evil.dpadmm_ledger_format (version integer)")
    connection.execute("CREATE FUNCTION evil.strpos(text, text) RETURNS integer LANGUAGE sql AS 'SELECT 0'")
    connection.execute(f"ALTER DATABASE {place.split('/')[-1]} SET search_path = evil, pg_catalog, public")
    Ledger(place).reserve("census", SMALL)
    assert len(Ledger(place).account("census").fits) == 1
    assert verify(place).ok


ADDRESSES = [
    f"postgresql://ada:{SECRET}@127.0.0.1:1/census",
    f"Postgresql://ada:{SECRET}@127.0.0.1:1/census",
    f"POSTGRES://ada:{SECRET}@127.0.0.1:1/census",
    f" postgresql://ada:{SECRET}@127.0.0.1:1/census",
    f"postgresql:/ada:{SECRET}@127.0.0.1:1/census",
    f"postgres:ada:{SECRET}@127.0.0.1/census",
    f"postgresql+psycopg://ada:{SECRET}@127.0.0.1/census",
    f"host=127.0.0.1 port=1 user=ada password={SECRET} dbname=census",
    f"HOST=127.0.0.1 password = '{SECRET}'",
    f"user=ada password='{SECRET}",
    f"dbname:census password={SECRET}",
    f"postgresql://ada:{SECRET}/census",
    f"postgresql://ada:x/{SECRET}@127.0.0.1:1/census",
    f"postgresql://ada:x@{SECRET}@127.0.0.1:1/census",
    f"postgresql://ada:x#{SECRET}@127.0.0.1:1/census",
    f"postgresql://127.0.0.1:1/census?password={SECRET}",
    f"postgresql://127.0.0.1:1/census&password={SECRET}",
    f"postgresql://127.0.0.1:1/census?pasword={SECRET}",
    f"postgresql://ada:%zz{SECRET}@127.0.0.1:1/census",
    f"postgresql://ada:{SECRET}%00@127.0.0.1:1/census",
    f"postgresql://[::1:1/{SECRET}",
    f"ada:{SECRET}@127.0.0.1/census",
    f"sslpassword={SECRET} host=127.0.0.1 port=1",
    f"host=127.0.0.1 port=1 sslpassword={SECRET}",
    f"scram_client_key={SECRET} host=127.0.0.1 port=1",
    f"unknown=1 oauth_client_secret={SECRET} host=127.0.0.1",
    f"unknown=1 sslpassword={SECRET}",
    f"Server=127.0.0.1;Pwd={SECRET}",
    f"token={SECRET}",
    f"mysql://ada:{SECRET}@127.0.0.1/census",
]


def everything_about(problem: BaseException) -> str:
    """An error, its notes and whatever hangs on it, with every local value of the library's own frames."""
    words, waiting, seen = [], [problem], set()
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        words += [str(error), repr(error), str(error.args), *getattr(error, "__notes__", [])]
        words += traceback.TracebackException.from_exception(error, capture_locals=False).format()
        waiting += [error.__cause__, error.__context__]
    return "\n".join(words)


def test_every_keyword_of_libpq_begins_an_address():
    """Any of them may stand before a password, and none names a file."""
    conninfo = pytest.importorskip("psycopg").pq.Conninfo
    unknown = [each.keyword.decode() for each in conninfo.get_defaults()]
    assert [name for name in unknown if not is_address(f"{name}=x host=y")] == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_password_is_ever_shown(address):
    pytest.importorskip("psycopg")
    for use in (Ledger, Ledger.create, verify):
        with pytest.raises(DpadmmError) as refusal:
            use(address)
        assert SECRET not in everything_about(refusal.value)
    model = DPLogisticRegression(1.0, 1e-6, ledger=address, dataset="census")
    step = PrivateQuantileClipper(bounds=(0, 1), epsilon=0.1, delta=0.0, ledger=address)
    for shown in (model, clone(model), step, make_pipeline(step, model), [model], {"model": model}):
        assert SECRET not in repr(shown)
        assert SECRET not in str(shown)
    assert SECRET not in model._repr_html_()
    assert SECRET not in repr(model.get_params()) + str(model.get_params()) + f"{model.ledger}" + repr(vars(model))
    assert model.ledger.secret == address
    assert pickle.loads(pickle.dumps(model)).ledger.secret == address
    with pytest.raises(DpadmmError) as refusal:
        model.fit([[0.0]], [0])
    assert SECRET not in everything_about(refusal.value)


def test_names_of_files_stay_what_they_are(tmp_path):
    for place in (tmp_path, str(tmp_path), "team.db", "C:\\team.db", "my ledger (host).db", None, 3):
        assert hidden(place) is place
    assert isinstance(hidden(hidden("host=db")), Address)


def test_a_ledger_prints_host_and_database_only(place):
    ledger = Ledger(place.replace("owner@", f"owner:{SECRET}@"))
    assert repr(ledger) == f"Ledger('postgresql://127.0.0.1/{place.split('/')[-1]}')"
    assert repr(ledger._store) == f"PostgresStore('postgresql://127.0.0.1/{place.split('/')[-1]}')"
    assert SECRET not in repr(vars(ledger))


def test_keywords_of_libpq_are_an_address(place):
    import psycopg

    words = " ".join(f"{name}={value}" for name, value in psycopg.conninfo.conninfo_to_dict(place).items())
    Ledger(words).reserve("census", SMALL)
    assert len(Ledger(place).account("census").fits) == 1


def test_a_commit_without_an_answer_is_said_to_be_uncertain(place, monkeypatch):
    import psycopg

    ledger = Ledger(place)

    def no_answer(self):
        raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(psycopg.Connection, "commit", no_answer)
    with pytest.raises(FileProblem, match="ledger show"), ledger._store.writing():
        pass


def test_the_store_of_an_unreadable_address_can_be_named():
    pytest.importorskip("psycopg")
    assert PostgresStore(Address(f"postgresql://ada:{SECRET}@[")).place == "postgresql://…"
