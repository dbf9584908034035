import mpmath
import numpy
import scipy.special
import torch
import torch.nn.functional as F
from common import normal, record, seed, uniform, write

mpmath.mp.dps = 40
special = torch.special


def positive(*shape):
    return uniform(0.2, 6.0, *shape)


for name, f in [
    ("leaky_relu", lambda x: F.leaky_relu(x, 0.1)), ("elu", lambda x: F.elu(x, 1.5)), ("selu", F.selu), ("gelu", F.gelu),
    ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")), ("mish", F.mish), ("softsign", F.softsign), ("hardtanh", F.hardtanh),
    ("log_sigmoid", F.logsigmoid), ("sinc", torch.sinc), ("frac", torch.frac), ("erfcx", special.erfcx), ("log_ndtr", special.log_ndtr),
    ("bessel_i0", special.i0), ("bessel_i1", special.i1), ("bessel_i0e", special.i0e), ("bessel_i1e", special.i1e), ("erfc", torch.erfc),
]:
    record(name, f, normal(2, 4) * 3)
record("lgamma", torch.lgamma, positive(2, 4))
record("lgamma", torch.lgamma, uniform(-4.0, 0.0, 5), tolerance=1e-11)
# The trigamma function of PyTorch, its derivative, has an asymptotic series that is cut after a few terms.
record("digamma", torch.digamma, positive(2, 4), tolerance=1e-9)
record("digamma", torch.digamma, uniform(-4.0, 0.0, 5), tolerance=1e-9)
for n in [1, 2, 4]:
    # As above.
    record("polygamma", lambda x: torch.polygamma(n, x), positive(5), tolerance=1e-9, n=n)
record("erfinv", torch.erfinv, uniform(-0.99, 0.99, 6))
record("ndtri", special.ndtri, uniform(0.01, 0.99, 6))
record("xlog1py", special.xlog1py, torch.tensor([0.0, 0.5, -2.0]), torch.tensor([3.0, 0.5, -0.25]))
record("lerp", torch.lerp, normal(3), normal(3), uniform(0, 1, 3))
record("copysign", torch.copysign, torch.tensor([1.5, -2.0, 0.0, 3.0]), torch.tensor([-1.0, 2.0, -1.0, -0.0]), gradients=None)
record("remainder", torch.remainder, torch.tensor([5.5, -5.5, 5.5, -5.5]), torch.tensor([2.0, 2.0, -2.0, -2.0]))
odd = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), -0.0, -2.5])
record("nan_to_num", torch.nan_to_num, odd)
for name, f in [("isnan", torch.isnan), ("isinf", torch.isinf), ("isfinite", torch.isfinite), ("signbit", torch.signbit)]:
    record(name, f, torch.where(odd.isnan(), odd.abs(), odd))
record("clamp", lambda x, a, b: x.clamp(a, b), normal(2, 4) * 2, -uniform(0, 1, 4), uniform(0, 1, 4))
record("clamp_min", lambda x: x.clamp_min(0.3), normal(5))
record("clamp_max", lambda x: x.clamp_max(0.3), normal(5))
a, b = torch.tensor([0, 5, -6, 127, 1 << 40]), torch.tensor([3, 3, 10, -1, 7])
for name, f in [
    ("bitand", torch.bitwise_and), ("bitor", torch.bitwise_or), ("bitxor", torch.bitwise_xor), ("integer_remainder", lambda a, b: a.remainder(b)),
]:
    record(name, f, a, b)
record("bitnot", torch.bitwise_not, a)
shift = torch.tensor([0, 1, 2, 5, 20])
record("shl", torch.bitwise_left_shift, a, shift)
record("shr", torch.bitwise_right_shift, a, shift)


def by_scipy(name, f, slopes, *inputs, **options):
    """A function of SciPy, with derivatives by formulas, or by mpmath with respect to parameters."""
    y = torch.from_numpy(f(*[x.numpy() for x in inputs]))
    g = seed(y)
    gradients = [g * torch.from_numpy(d(*[x.numpy() for x in inputs])) for d in slopes]
    record(name, lambda *_: y, *inputs, gradients=gradients, **options)


def numeric(f, k):
    """The derivative by argument k to many digits."""
    def slope(*x):
        along = lambda x: float(mpmath.diff(lambda v: f(*[v if j == k else mpmath.mpf(float(a)) for j, a in enumerate(x)]), float(x[k])))
        return numpy.array([along(list(p)) for p in zip(*x)])
    return slope


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def beta(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


for name, f, g in [("gammainc", scipy.special.gammainc, lower), ("gammaincc", scipy.special.gammaincc, lambda a, x: 1 - lower(a, x))]:
    by_scipy(name, f, [numeric(g, 0), numeric(g, 1)], positive(6), positive(6))
by_scipy("betainc", scipy.special.betainc, [numeric(beta, k) for k in range(3)], positive(5), positive(5), uniform(0.1, 0.9, 5))
digamma = scipy.special.digamma
by_scipy("betaln", scipy.special.betaln, [lambda a, b: digamma(a) - digamma(a + b), lambda a, b: digamma(b) - digamma(a + b)], positive(5), positive(5))
for n, (j, y) in enumerate([(scipy.special.j0, scipy.special.y0), (scipy.special.j1, scipy.special.y1)]):
    by_scipy(f"bessel_j{n}", j, [lambda x: scipy.special.jvp(n, x)], uniform(-30.0, 30.0, 8))
    by_scipy(f"bessel_y{n}", y, [lambda x: scipy.special.yvp(n, x)], uniform(0.1, 30.0, 8))
for n in [0, 1, 3]:
    by_scipy("spherical_j", lambda x: scipy.special.spherical_jn(n, x), [lambda x: scipy.special.spherical_jn(n, x, True)], uniform(0.1, 20.0, 6), n=n)
write("special")
