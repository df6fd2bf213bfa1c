"""Discrete Fourier transforms of lazy tensors, by the names of `numpy.fft`.

Each is a product with a matrix of roots of unity, which is computed where it is needed and never
stored. Therefore, transforms can be combined with the other products of a program, also with those
of sparse tensors. They take time proportional to the square of the number of points, where
`numpy.fft` takes ``n * log(n)``.

>>> import ucle
>>> ucle.fft.fft(ucle.array([1.0, 0.0, -1.0, 0.0])).to_numpy().round(12).tolist()
[0j, (2+0j), 0j, (2+0j)]
"""

from ucle.lazy.fourier import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
