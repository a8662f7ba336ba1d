"""`python -m dpadmm`: the program `dpadmm`, where its folder is not on the path."""

from dpadmm.cli.app import main

if __name__ == "__main__":
    main()
