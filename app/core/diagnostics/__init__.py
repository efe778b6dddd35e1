"""How good a map is: measured on data, against theory and against the alternatives."""
