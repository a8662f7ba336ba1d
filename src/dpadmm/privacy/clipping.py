"""The clip of one record, as privacy knows it; the arithmetic lives with the kernels that must keep it."""

from dpadmm.kernels.clipping import SAFETY, SMALLEST_CLIP, SMALLEST_SCALE, clip_slopes

__all__ = ["SAFETY", "SMALLEST_CLIP", "SMALLEST_SCALE", "clip_slopes"]
