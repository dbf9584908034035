"""Fourier transforms: every function, length, normalisation and kind of axes."""
import torch
from common import complex_normal, normal, record, write

NORMS = ["backward", "ortho", "forward"]


def transform(name, x, axes, lengths=None, norm="backward"):
    f = {"fft": torch.fft.fftn, "ifft": torch.fft.ifftn, "rfft": torch.fft.rfftn, "irfft": torch.fft.irfftn}[name]
    record(name, lambda x: f(x, s=lengths, dim=axes, norm=norm), x, axes=axes, lengths=lengths, norm=norm)


for n in [1, 2, 5, 6]:
    transform("fft", complex_normal(n), [0])
    transform("ifft", complex_normal(n), [0])
    transform("rfft", normal(n), [0])
    transform("irfft", complex_normal(n // 2 + 1), [0], [n])
transform("irfft", complex_normal(2, 4), [1])
transform("fft", normal(4), [0])
for norm in NORMS:
    transform("fft", complex_normal(4), [0], norm=norm)
    transform("ifft", complex_normal(4), [0], norm=norm)
    transform("rfft", normal(3, 4), [0, 1], norm=norm)
    transform("irfft", complex_normal(3, 3), [0, 1], [3, 5], norm=norm)
for lengths in [[3], [7]]:
    transform("fft", complex_normal(5), [0], lengths)
    transform("ifft", complex_normal(5), [0], lengths)
    transform("rfft", normal(5), [0], lengths)
    transform("irfft", complex_normal(5), [0], lengths)
for axes in [[0], [1], [0, 2], [2, 0], [1, 2], [0, 1, 2]]:
    transform("fft", complex_normal(2, 3, 2), axes)
    transform("ifft", complex_normal(2, 3, 2), axes)
    transform("rfft", normal(2, 3, 4), axes)
    transform("irfft", complex_normal(2, 3, 3), axes)
record("fftshift", lambda x: torch.fft.fftshift(x, dim=[0, 1]), normal(3, 4))
record("ifftshift", lambda x: torch.fft.ifftshift(x, dim=[0, 1]), normal(3, 4))
for n in [4, 5]:
    record("fftfreq", lambda n=n: torch.fft.fftfreq(n, 0.5), n=n)
    record("rfftfreq", lambda n=n: torch.fft.rfftfreq(n, 0.5), n=n)
write("fourier")
