"""One file for each figure or table of a paper; a new file is a new exhibit, and nothing else has to be touched."""
