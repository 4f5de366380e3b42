"""``python -m analyzer`` is ``crashcart``."""

from analyzer.cli import main

if __name__ == "__main__":
    main()
