"""Calibrations of these tests are remembered in a throw-away folder, never in the user's cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def throw_away_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPADMM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
