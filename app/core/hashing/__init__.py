"""Hash codes by consistent weighted sampling and by signs: random parameters, loops, encodings and estimates."""
