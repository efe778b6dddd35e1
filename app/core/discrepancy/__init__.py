"""Objectives of samplers that learn, also used by diagnostics: mean squared errors over differences of rows.

Each is N = A − 2 Σ_l ξ_l v_l + Σ_{l,m} ξ_l ξ_m H_lm of frequencies w_l with weights ξ_l, for one kernel. N is the mean
of |k(u) − k̂(u)|² over the differences u of a measure. A, its `energy`, is the mean of k(u)²; v_l is the mean of the
product of k and wave l, and H_lm that of the product of waves l and m.

Slow methods have an argument `pause`: it is called between steps of at most a quarter of a second.
"""
