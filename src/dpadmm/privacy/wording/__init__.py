"""The words and digits in which people read what a promise stores as keys and numbers; nothing reads them back.

| file | words |
|---|---|
| `rounding.py` | how a number is printed, rounded to the side on which the sentence stays true |
| `sentence.py` | a query, a search and a whole statement as sentences |
| `assumptions.py` | each assumption, whole and in short |
| `short.py` | a query as the cells of a table, and the promise in a few lines |
| `version1.py` | the sentences that statements of version 1 stored, kept as they were |
"""

from dpadmm.privacy.wording.rounding import ALL_DIGITS, DIGITS, SPENT, pair, rounded_down, rounded_up

__all__ = ["ALL_DIGITS", "DIGITS", "SPENT", "pair", "rounded_down", "rounded_up"]
