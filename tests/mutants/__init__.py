"""One-line mistakes put into the privacy-critical files, each of which the tests of its file must notice."""
