"""Losses as numbers, so that a kernel can tell them apart."""

LOGISTIC, HUBERISED_HINGE, SQUARED, HUBER, SOFTMAX = range(5)
