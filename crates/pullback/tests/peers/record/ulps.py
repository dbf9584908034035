"""The largest errors of the elementary functions in f64, in units of the last place, from the values that a test of the kernels writes:

PULLBACK_VALUES=values.txt cargo test --release -p pullback --lib values_of_f64 -- --ignored
python3 ulps.py values.txt
"""

import math
import struct
import sys

import mpmath
from mpmath import mpf

mpmath.mp.dps = 50

FUNCTIONS = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpf(2) ** x,
    "expm1": mpmath.expm1,
    "ln": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.ln2,
    "log10": mpmath.log10,
    "log1p": mpmath.log1p,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "cbrt": lambda x: mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "pow": lambda a, b: a**b,
    "atan2": mpmath.atan2,
    "hypot": mpmath.hypot,
}


def float_of(bits):
    return struct.unpack("<d", struct.pack("<Q", int(bits, 16)))[0]


def ulps(y, exact):
    if math.isinf(y):
        return 0 if abs(exact) > sys.float_info.max else math.inf
    exponent = max(mpmath.frexp(exact)[1] - 53, -1074) if exact else -1074
    return float(abs(mpf(y) - exact) / mpf(2) ** exponent)


worst, known = {}, {}
for text in open(sys.argv[1]):
    isa, name, *bits = text.split()
    *x, y = map(float_of, bits)
    # The instruction sets share their arguments.
    at = (name, *bits[:-1])
    if at not in known:
        known[at] = FUNCTIONS[name](*map(mpf, x))
    error = ulps(y, known[at])
    if error >= worst.get((name, isa), (-1,))[0]:
        worst[name, isa] = (error, x)
for (name, isa), (error, x) in worst.items():
    print(f"{name:8} {isa:8} {error:.3f} at {x}")
