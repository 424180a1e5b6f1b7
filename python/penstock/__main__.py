"""`python -m penstock`: the same as the `penstock` command."""

from penstock._command import main

main()
