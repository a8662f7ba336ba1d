"""DP-SGD on one linear layer with jax-privacy: its clipping, noise, batches and calibration. Runs in .venv-peers."""

from __future__ import annotations

import jax
import numpy as np
import optax
from jax import numpy as jnp
from jax_privacy import accounting, batch_selection, clipped_grad, noise_addition

from exchange import serve

PADDING = 128


def train(
    X: np.ndarray,
    y: np.ndarray,
    epsilon: float,
    delta: float,
    seed: int,
    epochs: int = 10,
    batch_size: int = 512,
    step: float = 2.0,
    clip_norm: float = 1.0,
) -> np.ndarray:
    n_rows, updates = len(y), epochs * max(1, len(y) // batch_size)
    classes = int(y.max()) + 1
    weights = jnp.zeros((X.shape[1],) if classes == 2 else (X.shape[1], classes))
    gradient = jax.jit(
        clipped_grad(_loss, l2_clip_norm=clip_norm, batch_argnums=(1, 2), normalize_by=batch_size, keep_batch_dim=False)
    )
    privatizer = noise_addition.gaussian_privatizer(
        stddev=_noise(epsilon, delta, n_rows, batch_size, updates) * clip_norm / batch_size,
        prng_key=jax.random.key(seed),
    )
    optimizer = optax.chain(privatizer, optax.sgd(step))
    state, advance = optimizer.init(weights), jax.jit(optimizer.update)
    batches = batch_selection.CyclicPoissonSampling(batch_size / n_rows, updates)
    for chosen in batches.batch_iterator(n_rows, seed):
        rows = batch_selection.pad_to_multiple_of(chosen, PADDING)
        total = gradient(weights, X[rows], y[rows], is_padding_example=rows < 0)
        change, state = advance(total, state)
        weights = optax.apply_updates(weights, change)
    return np.asarray(weights)


def _loss(weights: jax.Array, row: jax.Array, target: jax.Array) -> jax.Array:
    if weights.ndim == 1:
        return optax.sigmoid_binary_cross_entropy(row @ weights, target)
    return optax.softmax_cross_entropy_with_integer_labels(row @ weights, target)


def _noise(epsilon: float, delta: float, n_rows: int, batch_size: int, updates: int) -> float:
    accountant = accounting.DpsgdTrainingAccountant(accounting.PldAccountantConfig(value_discretization_interval=1e-3))
    return accounting.calibrate_noise_multiplier(
        target_epsilon=epsilon,
        accountant=accountant,
        batch_sizes=batch_size,
        num_updates=updates,
        num_samples=n_rows,
        target_delta=delta,
    )


if __name__ == "__main__":
    serve(train)
