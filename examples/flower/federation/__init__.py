"""A Flower app that carries the messages of a federation."""
