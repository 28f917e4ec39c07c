"""`python -m latentbit`, which is what torchrun starts."""

from latentbit.cli import main

main()
