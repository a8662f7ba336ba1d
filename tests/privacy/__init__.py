"""Attacks on the library's own privacy claims. A package, so that its file names may repeat those of other folders."""
