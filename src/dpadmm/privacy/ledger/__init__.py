"""What every data set has spent: a persistent, hash-chained record, charged before training and never refunded.

| file | idea |
|---|---|
| `entries.py` | what is written down, and the chain of hashes through it |
| `charge.py` | what one fit costs, and what many cost together |
| `sums.py`, `standing.py`, `balance.py` | exact sums, where a data set stands, and where all stand: enough to charge |
| `book.py` | the record read from its beginning, with every fit |
| `names.py` | names of data sets that nobody can take for each other |
| `store.py` | where the record lives, and the one door to it |
| `sqlite.py`, `sqlite_place.py`, `sqlite_pages.py` | a file, its one name, its pages |
| `postgres.py`, `postgres_schema.py` | a server, and what must hold of its tables |
| `memory.py` | what a ledger object has seen, and one transaction |
| `ledger.py` | `Ledger`: reserve, commit, limits |
| `payment.py` | one fit and the ledger that pays for it |
| `verification.py` | is the record as it was written, and does it hold what it should? |
"""

from dpadmm.privacy.ledger.ledger import Ledger
from dpadmm.privacy.ledger.payment import Payment
from dpadmm.privacy.ledger.verification import Verification, release_digest, verify

__all__ = ["Ledger", "Payment", "Verification", "release_digest", "verify"]
