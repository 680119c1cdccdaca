"""Run the command line with `python -m exportlab.cli`, if the `exportlab` script is not installed."""

from . import main

if __name__ == "__main__":
    main()
