"""Models of what communication costs: fitted from measurements, used to predict and to choose.

====================  ======================================================================================
module                holds
====================  ======================================================================================
`growth`              how a parameter depends on the number of processes
`models`              Hockney's model, LogGP, the linear model with a protocol term, and piecewise lines
`fitting`             parameters from measurements, with confidence intervals; which model predicts best
`metrics`             asymptotic bandwidth and specific performance
`equivalents`         combinations of operations that do the same as one, and from where on they are faster
====================  ======================================================================================

Times are in microseconds, messages in bytes, transfer times in microseconds per byte, everywhere in this package; only
tables show nanoseconds per byte. What the bytes of a collective operation are is said in `metrics`.

Sources: R. W. Hockney, "The communication challenge for MPP" (1994); A. Alexandrov et al., "LogGP" (1995); the linear
model with a protocol term, the metrics and the combinations: G. L. Taboada, J. Tourino, R. Doallo, "Performance
analysis of message-passing libraries on high-speed clusters" (2010).
"""
