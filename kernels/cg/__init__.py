"""The Poisson equation in two dimensions by conjugate gradients."""
