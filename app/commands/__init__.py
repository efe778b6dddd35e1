"""The commands of `bochner`: `add` of each file says what its command lines take, and what runs them."""
