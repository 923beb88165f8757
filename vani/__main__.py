"""`python -m vani` is the command `vani`."""

from vani.cli.main import main

if __name__ == "__main__":
    main()
