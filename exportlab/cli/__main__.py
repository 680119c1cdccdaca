"""`python -m exportlab.cli`: the command, where no script of that name is installed."""

from . import main

if __name__ == "__main__":
    main()
