"""Run the command line with `python -m exportlab`, if the `exportlab` script is not on the path."""

from .cli import main

if __name__ == "__main__":
    main()
