"""Figures as the papers print them, and the data they have that cannot be had."""

SEQUENCES = ("Halton", "Sobol'", "lattice", "digital net", "MC")

REGRESSION: dict[int, tuple[tuple[float, float], ...]] = {
    100: ((0.0367, 0), (0.0383, 0.0015), (0.0374, 0.0010), (0.0376, 0.0010), (0.0383, 0.0013)),
    500: ((0.0339, 0), (0.0344, 0.0005), (0.0348, 0.0007), (0.0343, 0.0005), (0.0349, 0.0009)),
    1000: ((0.0334, 0), (0.0339, 0.0007), (0.0337, 0.0004), (0.0335, 0.0003), (0.0338, 0.0005)),
}
"""QMC, table 1, cpu: by s, in the order of `SEQUENCES`, mean and standard deviation over 10 trials."""

DISCREPANCIES: dict[tuple[int, float], tuple[float, ...]] = {
    (100, 1.0): (3.41e-3, 1.29e-6, 3.02e-4, 7.84e-5),
    (300, 1.0): (8.09e-4, 5.14e-6, 5.85e-5, 1.45e-6),
    (500, 1.0): (2.39e-4, 2.83e-6, 1.86e-5, 3.39e-7),
    (100, 0.25): (9.44e-5, 5.57e-8, 2.62e-5, 1.67e-8),
    (300, 0.25): (2.57e-5, 1.06e-7, 3.08e-6, 2.93e-9),
    (500, 0.25): (7.91e-6, 2.62e-8, 1.04e-6, 2.43e-9),
}
"""QMC, table 2, cpu: by s and the part of the box, for Halton, global, greedy and weighted."""

LEARNED_REGRESSION: dict[int, tuple[float, ...]] = {
    100: (0.0304, 0.0315, 0.0296, 0.0307, 0.0296, 0.0366, 0.0305),
    300: (0.0303, 0.0278, 0.0293, 0.0274, 0.0269, 0.0290, 0.0302),
    500: (0.0348, 0.0347, 0.0348, 0.0328, 0.0291, 0.0342, 0.0347),
}
"""QMC, table 3, cpu: by s, for Halton, then global, greedy and weighted, each over b and b/4."""

COMPONENTS: dict[tuple[str, str], tuple[float, ...]] = {
    ("mnist-300", "all"): (75.40, 75.90, 76.50, 75.40),
    ("mnist-300", "eighth"): (81.00, 81.45, 81.24, 81.23),
    ("lr500", "all"): (30.62, 30.07, 29.30, 29.30),
    ("lr500", "eighth"): (24.34, 23.63, 24.44, 23.00),
}
"""Moment matching, table 1, in percent: 4,096 and 512 components, for MC, Sobol, scrambled Sobol and MM."""

KERNEL_SVMS: dict[str, tuple[float, float, float, float]] = {
    "car": (71.53, 94.91, 100, 98.96),
    "satimage": (72.45, 85.20, 200, 90.40),
    "splice": (85.10, 90.02, 15, 95.22),
    "vowel": (39.39, 94.70, 45, 96.97),
    "letter": (61.66, 97.44, 11, 97.26),
}
"""GMM, tables 1 and 2: test accuracy in percent of linear, RBF (and its best γ) and GMM kernels."""
