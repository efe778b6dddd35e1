"""Search among packed codes: comparison of codes, buckets, and advice on how many rows a search must look at."""
