"""How bytes get to silos and back: in one process, or over sockets with TLS. A transport knows nothing of their meaning."""
