"""From the public choices of a fit to its certified plan, without data and without scikit-learn.

| file | idea |
|---|---|
| `declaration.py` | all public choices of one fit, and what follows from them |
| `target.py` | what is public about labels and targets |
| `penalties.py` | names of penalties, and what they mean for a problem |
| `weights.py` | public weights of rows and classes |
| `budgeted_steps.py` | private answers that stand where public declarations would |
| `recipe.py` | solver, sampler, clip and plan |
| `resources.py` | whether a machine has room for the model |
| `remarks.py` | what public numbers say against a fit |
"""
