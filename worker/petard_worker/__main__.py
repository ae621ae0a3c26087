"""`python -m petard_worker` is `petard`."""

from petard_worker.cli import main

main()
