"""The tables of a ledger in PostgreSQL, and the comparison that finds whatever else could swallow an entry."""

from __future__ import annotations

from typing import Any

from dpadmm.privacy.ledger.entries import damaged

GUARD = " BEGIN RAISE EXCEPTION 'entries of a ledger are never changed or removed'; END "
SCHEMA = f"""
CREATE TABLE dpadmm_ledger_format (version integer NOT NULL);
CREATE TABLE dpadmm_ledger (sequence bigint PRIMARY KEY, text text NOT NULL, hash text NOT NULL);
CREATE FUNCTION dpadmm_ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql
    AS $${GUARD}$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON dpadmm_ledger
    FOR EACH ROW EXECUTE FUNCTION dpadmm_ledger_is_append_only();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON dpadmm_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION dpadmm_ledger_is_append_only();
"""
HOMES = """
SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'dpadmm_ledger' AND n.nspname !~ '^pg_' ORDER BY 1
"""
# Permanent tables, without row security, without rules, and not part of another.
TABLES = """
SELECT relname, relkind::text, relpersistence::text, relrowsecurity OR relforcerowsecurity,
    EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = c.oid),
    EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE c.oid IN (inhrelid, inhparent))
FROM pg_catalog.pg_class c
WHERE relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'dpadmm_ledger'::regclass)
    AND relname IN ('dpadmm_ledger', 'dpadmm_ledger_format') ORDER BY 1
"""
COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull, attgenerated::text, attidentity::text
FROM pg_catalog.pg_attribute
WHERE attrelid = 'dpadmm_ledger'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
# 27 is BEFORE UPDATE OR DELETE FOR EACH ROW, 34 is BEFORE TRUNCATE FOR EACH STATEMENT, O is enabled.
TRIGGERS = """
SELECT tgname, tgtype::int, tgenabled::text, tgqual IS NULL, proname, prosrc
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
WHERE tgrelid IN ('dpadmm_ledger'::regclass, 'dpadmm_ledger_format'::regclass) ORDER BY 1
"""
KEYS = """
SELECT count(*) FROM pg_catalog.pg_index
WHERE indrelid = 'dpadmm_ledger'::regclass AND indisprimary AND indisvalid AND indisready
"""
GUARDED = "dpadmm_ledger_is_append_only"
EXPECTED: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "the kind of its tables, their row security or their rules": (
        TABLES,
        [("dpadmm_ledger", "r", "p", False, False, False), ("dpadmm_ledger_format", "r", "p", False, False, False)],
    ),
    "its columns": (
        COLUMNS,
        [("sequence", "bigint", True, "", ""), ("text", "text", True, "", ""), ("hash", "text", True, "", "")],
    ),
    "its triggers": (
        TRIGGERS,
        [("append_only", 27, "O", True, GUARDED, GUARD), ("never_emptied", 34, "O", True, GUARDED, GUARD)],
    ),
    "its primary key": (KEYS, [(1,)]),
}


def enter_home(connection: Any) -> bool:
    """Let names mean the ledger of this database, whatever the role's search path; False if there is none."""
    connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
    homes = [row[0] for row in connection.execute(HOMES)]
    if len(homes) > 1:
        raise damaged(f"{len(homes)} schemas hold a table dpadmm_ledger, and a search path decides which is meant")
    if not homes:
        return False
    # Temporary tables would come first if they were not named.
    connection.execute(
        "SELECT set_config('search_path', 'pg_catalog, ' || quote_ident(%s) || ', pg_temp', true)", (homes[0],)
    )
    return bool(connection.execute("SELECT to_regclass('dpadmm_ledger_format') IS NOT NULL").fetchone()[0])


def require_as_made(connection: Any) -> None:
    """Refuse tables with a rule, a trigger or a policy that this library did not make: it could swallow a charge."""
    for what, (question, expected) in EXPECTED.items():
        if connection.execute(question).fetchall() != expected:
            raise damaged(f"{what} were changed: an entry could be swallowed or altered unseen")
