"""Initial values of trained parameters: random arrays whose spread suits the sizes of layers.

For a matrix that is multiplied from the left by vectors (``x @ W``), the first axis is the fan-in
and the second the fan-out. Axes before these two, as in convolutions, multiply both. For a vector,
both are its length. The functions return NumPy arrays, with numbers from `ucle.random`.

Sources: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
networks (AISTATS 2010); He, Zhang, Ren and Sun, Delving deep into rectifiers (ICCV 2015).
"""

from ucle.lazy.random import glorot_normal, glorot_uniform, he_normal, he_uniform

__all__ = ["glorot_normal", "glorot_uniform", "he_normal", "he_uniform"]
