"""Figures of the source's tables 6 to 8: ratios of run times with 4 processes (table 6) or on 4 nodes.

Each is for sizes A, B and C: of ScaMPI, a library for C, and of MPJ/Ibis, one in Java.
"""

from __future__ import annotations

Ratios = dict[str, tuple[float, float, float]]

#: One process on each of 4 nodes, and two on each of 2.
TABLE_6: dict[str, Ratios] = {
    "ScaMPI": {
        "LUFact": (0.93, 0.69, 0.56),
        "Series": (0.95, 0.99, 1.00),
        "SOR": (0.70, 0.63, 0.59),
        "SparseMatmult": (0.56, 0.47, 0.46),
        "Crypt": (1.02, 1.01, 1.00),
    },
    "MPJ/Ibis": {
        "LUFact": (0.86, 0.88, 0.68),
        "Series": (1.22, 1.00, 1.00),
        "SOR": (0.90, 0.85, 0.76),
        "SparseMatmult": (0.89, 0.94, 0.86),
        "Crypt": (0.98, 1.02, 1.00),
    },
}
#: One process on each node, and two.
TABLE_7: dict[str, Ratios] = {
    "ScaMPI": {
        "LUFact": (0.92, 1.03, 0.97),
        "Series": (1.67, 1.99, 1.95),
        "SOR": (1.02, 0.99, 0.98),
        "SparseMatmult": (0.62, 0.71, 0.72),
        "Crypt": (1.66, 1.78, 1.78),
    },
    "MPJ/Ibis": {
        "LUFact": (0.70, 0.93, 1.08),
        "Series": (1.58, 1.95, 1.97),
        "SOR": (1.01, 1.10, 1.08),
        "SparseMatmult": (0.58, 0.63, 0.67),
        "Crypt": (1.65, 1.87, 1.89),
    },
}
#: Two processes on each node, and four, with Hyper-Threading.
TABLE_8: dict[str, Ratios] = {
    "ScaMPI": {
        "LUFact": (0.61, 0.78, 0.88),
        "Series": (1.30, 1.24, 1.36),
        "SOR": (0.80, 0.87, 0.89),
        "SparseMatmult": (0.54, 0.74, 0.88),
        "Crypt": (0.94, 1.22, 1.24),
    },
    "MPJ/Ibis": {
        "LUFact": (0.46, 0.60, 0.70),
        "Series": (1.27, 1.30, 1.29),
        "SOR": (0.70, 0.70, 0.75),
        "SparseMatmult": (0.44, 0.44, 0.49),
        "Crypt": (1.14, 1.22, 1.27),
    },
}
SPEED_UPS = (
    "In the source Series has efficiencies of 48 % to 99 %, Crypt and SOR similar but smaller ones; LUFact and "
    "SparseMatmult are slower on several processes at size A, and C is ahead of Java everywhere."
)
