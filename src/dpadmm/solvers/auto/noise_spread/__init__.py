"""How far the released coefficients move with the privacy noise: answers kept, a model of the rows, replays.

Everything here is post-processing: its only input is a `Transcript`, which holds noisy answers and public numbers.
"""
