"""Random numbers that are functions of a seed and a position: Philox4x32-10, counter-based.

Numbers are not drawn in sequence. The number at a position of a tensor, counted in row-major order,
depends only on the seed and that position. Therefore it is the same, bit for bit, in a kernel, in
SQL and in NumPy, for every layout and every plan, on every machine.

With ``shape=`` (and ``axes=`` for names), the functions return lazy tensors. Without it, they
return a `RandomTensor`, which takes its shape and element type from the input that it replaces in
an execution. Its method ``array(shape)`` returns a NumPy array.

>>> import ucle
>>> ucle.random.uniform(seed=7, shape=(2, 2)).to_numpy().round(3)
array([[0.955, 0.407],
       [0.006, 0.39 ]])
>>> ucle.random.uniform(seed=7).array((4,)).round(3)
array([0.955, 0.407, 0.006, 0.39 ])

Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from ucle.inputs.random_tensors import RandomTensor
from ucle.lazy.random import bernoulli, key, normal, permutation, uniform

__all__ = ["RandomTensor", "bernoulli", "key", "normal", "permutation", "uniform"]
