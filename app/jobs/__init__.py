"""Jobs: long work in processes of its own, which survives the death of any of them."""
