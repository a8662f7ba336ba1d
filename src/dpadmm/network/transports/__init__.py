"""How bytes get to silos and back: in one process, or over sockets with TLS. What they mean is unknown here."""
