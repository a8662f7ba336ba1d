"""What every data set has spent: a persistent, hash-chained record, charged before training and never refunded.

| file | idea |
|---|---|
| `entries.py` | what is written down, and the chain of hashes through it |
| `charge.py` | what one fit costs, and what many cost together |
| `book.py` | the record read from its beginning: data sets, limits, fits |
| `store.py` | where the record lives, and the one door to it |
| `sqlite.py`, `sqlite_pages.py`, `postgres.py` | a file, or a server |
| `ledger.py` | `Ledger`: reserve, commit, limits |
| `payment.py` | one fit and the ledger that pays for it |
| `verification.py` | is the record as it was written, and does it hold what it should? |
"""

from dpadmm.privacy.ledger.ledger import Ledger
from dpadmm.privacy.ledger.payment import Payment
from dpadmm.privacy.ledger.verification import Verification, release_digest, verify

__all__ = ["Ledger", "Payment", "Verification", "release_digest", "verify"]
