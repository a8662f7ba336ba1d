"""The papers whose figures and tables are reproduced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """Its key, how it is cited, what is wrong with its privacy claims in one sentence, and what other pages show."""

    key: str
    short: str
    citation: str
    privacy: str
    elsewhere: str = ""


PAPERS = {
    paper.key: paper
    for paper in (
        Paper(
            "liu2022",
            "Liu 2022",
            "Y. Liu, J. Geng, F. Shang, W. An, H. Liu, Q. Zhu, W. Feng, “Laplacian Smoothing Stochastic ADMMs With "
            "Differential Privacy Guarantees”, IEEE Transactions on Information Forensics and Security, 2022",
            "No published number is covered by a theorem: the conditions of Theorem 2 hold for none of the 24 "
            "settings, Theorem 1 has no usable constant, and DP-VRADMM uses an exact gradient.",
        ),
        Paper(
            "wang2020",
            "Wang 2020",
            "B. Wang, Q. Gu, M. Boedihardjo, L. Wang, F. Barekat, S. Osher, “DP-LSSGD: A Stochastic Optimization "
            "Method to Lift the Utility in Privacy-Preserving ERM”, MSML 2020",
            "Its Theorem 2 is the same formula as in Liu 2022, and its conditions fail at every published budget.",
        ),
        Paper(
            "chen2020",
            "Chen & Lee 2020",
            "C. Chen, J. Lee, “Rényi Differentially Private ADMM for Non-Smooth Regularized Optimization”, CODASPY "
            "2020",
            "ssADMM is valid as stated. The sensitivity of mpADMM lacks a factor η: noise is wasted for η < 1 and too "
            "small for η > 1. Features are scaled by their own minimum and maximum, which are data.",
        ),
        Paper(
            "huang2020",
            "Huang 2020",
            "Z. Huang, Y. Gong, “Differentially Private ADMM for Convex Distributed Learning: Improved Accuracy via "
            "Multi-Step Approximation”, 2020",
            "Equation (18) divides by the weight of the step before, which is zero at first: the first noise of a "
            "round is far too small.",
            "Figures 1 to 3 are in docs/decentralised.md.",
        ),
        Paper(
            "chan2024",
            "Chan 2024",
            "T.-H. H. Chan, H. Xie, M. Zhao, “Privacy Amplification by Iteration for ADMM with (Strongly) Convex "
            "Objective Functions”, AAAI 2024",
            "Valid for the last iterate and A of full row rank. With a tall A the divergence is infinite.",
            "More about it is in docs/iteration.md.",
        ),
    )
}
