"""Scattering features: each picture by itself, and what the transform is known to do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from dpadmm import DPLogisticRegression, GroupNorm, LaplacianBlur, Scattering, load_model
from dpadmm.errors import InvalidData, InvalidParameter
from dpadmm.problem.smoothers import GridLaplacian

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (9, 256)).astype(np.uint8)


@pytest.mark.parametrize(
    "make", [lambda: Scattering(2, 4), lambda: GroupNorm(16), lambda: LaplacianBlur(GridLaplacian(1.0, 16, 16))]
)
def test_a_row_alone_decides_its_features_to_the_last_bit(make):
    made = make().fit(PICTURES)
    together = made.transform(PICTURES)
    for place, picture in enumerate(PICTURES):
        alone = made.transform(picture[None])
        assert alone.tobytes() == together[place : place + 1].tobytes()
    others = PICTURES.copy()
    others[:8] = RNG.integers(0, 256, (8, 256))
    assert made.transform(others[::-1])[0].tobytes() == together[8].tobytes()


def test_maps_and_cells():
    assert Scattering().fit_transform(np.zeros((2, 784), dtype=np.uint8)).shape == (2, 81 * 49)
    coloured = Scattering(shape=(32, 32, 3)).fit_transform(np.zeros((1, 3072), dtype=np.uint8))
    assert coloured.shape == (1, 3 * 81 * 64)
    assert coloured.dtype == np.float32
    assert Scattering(J=3, L=2).fit_transform(np.zeros((1, 256))).shape == (1, (1 + 6 + 12) * 4)


def test_an_even_picture_has_its_value_in_the_means_and_nothing_else():
    found = Scattering(2, 4).fit_transform(np.full((1, 256), 51.0)).reshape(-1, 16)
    np.testing.assert_allclose(found[0], 0.2, rtol=1e-3)  # the bell of the mean ends where it is cut off
    assert np.abs(found[1:]).max() < 1e-6


def test_features_are_as_large_as_the_picture_is_bright():
    scattering = Scattering(2, 4).fit(PICTURES)
    np.testing.assert_allclose(
        scattering.transform(PICTURES / 2.0), scattering.transform(PICTURES) / 2, rtol=1e-4, atol=1e-6
    )


def test_an_edge_is_seen_by_the_wavelets_that_look_across_it():
    """First-order maps of a picture of upright stripes and of the same picture lying: angles a quarter turn apart."""
    stripes = np.tile(np.arange(16) % 4 < 2, (16, 1)) * 255.0
    upright, lying = (
        Scattering(2, 4).fit_transform(picture.reshape(1, -1)).reshape(-1, 4, 4)[1:5].mean(axis=(1, 2))
        for picture in (stripes, stripes.T)
    )
    np.testing.assert_allclose(upright, np.roll(lying, 2), rtol=1e-3, atol=1e-6)
    assert upright.max() > 3 * upright.min()


def test_one_bad_pixel_spoils_one_row():
    broken = PICTURES.astype(np.float64)
    broken[3, 7] = np.nan
    found = Scattering(2, 4).fit_transform(broken)
    assert np.isfinite(np.delete(found, 3, axis=0)).all()
    assert not np.isfinite(found[3]).all()


@pytest.mark.parametrize(
    ("wrong", "width"),
    [
        (Scattering(J=0), 256),
        (Scattering(J=9), 256),
        (Scattering(J=4), 256),
        (Scattering(L=33), 256),
        (Scattering(white=0.0), 256),
        (Scattering(), 255),
        (Scattering(shape=(16, 15)), 240),
        (Scattering(shape=(16, 16, 3)), 256),
        (GroupNorm(3), 256),
        (GroupNorm(0), 256),
        (GroupNorm(4, floor=0.0), 256),
    ],
)
def test_what_cannot_be_mapped_is_refused(wrong, width):
    with pytest.raises(InvalidParameter):
        wrong.fit(np.zeros((1, width)))


def test_sparse_rows_are_refused():
    with pytest.raises(InvalidData, match="dense"):
        Scattering().fit(sparse.csr_matrix(np.zeros((1, 784))))


def test_a_saved_model_names_the_maps_before_it(tmp_path):
    y = (PICTURES.mean(axis=1) > 127).astype(int)
    model = DPLogisticRegression(1.0, delta=1e-2, classes=[0, 1], random_state=0)
    pipeline = make_pipeline(Scattering(2, 2), "passthrough", GroupNorm(9), model).fit(PICTURES, y)
    expected = ("Scattering(J=2, L=2, shape=None, white=255.0)", "GroupNorm(floor=1e-05, groups=9)")
    assert pipeline[-1].maps_before_ == expected
    assert load_model(pipeline[-1].save(tmp_path / "model")).maps_before_ == expected
    alone = model.fit(PICTURES.astype(float), y)
    assert alone.maps_before_ == ()
    assert load_model(alone.save(tmp_path / "other")).maps_before_ == ()
