"""Run the command line with `python -m exportlab.cli`, which is the same as `python -m exportlab`."""

from . import main

if __name__ == "__main__":
    main()
