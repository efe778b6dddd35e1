"""Search among packed codes: comparing them, and how many rows have to be looked at."""
