"""Commands of `bochner`: `add` of each module defines the arguments of its commands and the functions to run."""
