"""Short names of papers that more than one kind is taken from."""

RFF = "Rahimi and Recht (2007), Random features for large-scale kernel machines"
QMC = "Avron, Sindhwani, Yang, Mahoney (2016), Quasi-Monte Carlo feature maps for shift-invariant kernels"
MM = "Shen, Yang, Wang (2017), Random features for shift-invariant kernels with moment matching"
GQ = "Dao, De Sa, Ré (2017), Gaussian quadrature for kernel features"
GMM = "Li (2017), Linearized GMM kernels and normalized random Fourier features"
