"""The best of a random number of private runs: what it costs, and the plan that says so before it runs.

| file | idea |
|---|---|
| `repetitions.py` | how many runs there are: a random number that stays secret |
| `search_event.py` | what the selection does to the data |
| `bounds.py` | what it costs, by privacy profiles and by Rényi divergences |
| `search_plan.py` | `SearchPlan`: the least noise with which the total keeps to the budget |
"""

from dpadmm.privacy.selection.repetitions import Repetitions
from dpadmm.privacy.selection.search_event import Selection
from dpadmm.privacy.selection.search_plan import (
    SearchPlan,
    calibrate_search,
    plan_from_dict,
    require_any_agreement,
    verify_any_plan,
)

__all__ = [
    "Repetitions",
    "SearchPlan",
    "Selection",
    "calibrate_search",
    "plan_from_dict",
    "require_any_agreement",
    "verify_any_plan",
]
