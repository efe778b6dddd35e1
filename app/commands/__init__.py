"""The commands of `bochner`, one a file: `add` says what its command line takes, and what runs it."""
