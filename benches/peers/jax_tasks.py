"""The tasks of benches/src/eager in JAX, compiled with `jit` as its users would. Arguments are arrays on the device; what a task
computes is waited for. A chain is one compiled function, so its time for one operation says nothing of dispatch."""

import os

# Before the import. The number of threads is the number of cores that benches/run lets the process use.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

import protocol

CHAIN = 1000
LARGE, ROWS = (10_000, 1000), (4096, 1000)
FLOATS = {"f32": np.float32, "f64": np.float64}
rng = np.random.default_rng(1)
tasks = {}


def task(name, f, *arguments, units=1):
    """Adds a function of arrays, which are made by calling `arguments` when the task is set up."""

    def set_up():
        compiled, values = jax.jit(f), [jnp.asarray(make()) for make in arguments]
        return lambda: jax.block_until_ready(compiled(*values))

    tasks[name] = (units, set_up)


def chain(a, b):
    def two(_, y):
        return y * a + b

    return jax.lax.fori_loop(0, CHAIN // 2, two, a)


for n in (1, 10):
    leaf = lambda v, n=n: lambda: np.full(() if n == 1 else (n,), v)
    task(f"chain/n={n},forward", chain, leaf(0.999), leaf(0.001), units=CHAIN)
    value = lambda a, b: chain(a, b).sum()
    task(f"chain/n={n},forward+backward", jax.grad(value, (0, 1)), leaf(0.999), leaf(0.001), units=CHAIN)


def gelu(x):
    return 0.5 * x * (1.0 + jnp.tanh(0.797884 * (x + 0.044715 * x * x * x)))


elementwise = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "mul_add": lambda a, b: a * b + a,
    "exp": lambda a, b: jnp.exp(a),
    "tanh": lambda a, b: jnp.tanh(a),
    "relu": lambda a, b: jnp.maximum(a, 0),
    "where": lambda a, b: jnp.where(a > 0, a, b),
    "gelu_by_hand": lambda a, b: gelu(a),
    "broadcast_add": lambda a, b: a + b[0],
}
reductions = {
    "sum": lambda a, b: a.sum(),
    "sum_axis_0": lambda a, b: a.sum(0),
    "sum_axis_1": lambda a, b: a.sum(1),
    "mean": lambda a, b: a.mean(),
    "max": lambda a, b: a.max(),
    "max_axis_1": lambda a, b: a.max(1),
}
for name, dtype in FLOATS.items():
    square = lambda n, dtype=dtype: lambda: rng.standard_normal((n, n)).astype(dtype)
    for n in (64, 256, 1024):
        task(f"matmul/{n},{name}", lambda a, b: a @ b, square(n), square(n))
    large = lambda dtype=dtype: (rng.random(LARGE) - 0.5).astype(dtype)
    for group, functions in (("elementwise", elementwise), ("reduction", reductions)):
        for what, f in functions.items():
            task(f"{group}/{what},{name}", f, large, large)


def definite(n):
    a = rng.standard_normal((n, n))
    return a @ a.T / n + np.eye(n)


for what, n, f in (
    ("solve", 1024, lambda a: jnp.linalg.solve(a, a[0])), ("inv", 1024, jnp.linalg.inv), ("qr", 512, jnp.linalg.qr),
    ("svd", 256, lambda a: jnp.linalg.svd(a, full_matrices=False)),
):
    task(f"linalg/{what}_{n},f64", f, lambda n=n: rng.standard_normal((n, n)))
task("linalg/cholesky_1024,f64", jnp.linalg.cholesky, lambda: definite(1024))
task("linalg/eigh_256,f64", jnp.linalg.eigh, lambda: definite(256))
task("linalg/solve_1000_of_8,f64", jnp.linalg.solve, lambda: rng.standard_normal((1000, 8, 8)), lambda: rng.standard_normal((1000, 8, 1)))


LONG = 1 << 20
reals = lambda *shape: lambda: rng.standard_normal(shape).astype(np.float32)
complexes = lambda *shape: lambda: reals(*shape)() + 1j * reals(*shape)()
task("fourier/fft,2^20,c64", jnp.fft.fft, complexes(LONG))
task("fourier/fft,1024x1024,c64", jnp.fft.fft, complexes(1024, 1024))
task("fourier/fft2,1024x1024,c64", jnp.fft.fft2, complexes(1024, 1024))
task("fourier/rfft,2^20,f32", jnp.fft.rfft, reals(LONG))


def filtered(x, h, g):
    return jax.vjp(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * h, LONG), x)[1](g)


task("fourier/filter,2^20,f32,forward+backward", filtered, reals(LONG), complexes(LONG // 2 + 1), reals(LONG))


def rows():
    return rng.standard_normal(ROWS).astype(np.float32)


def labels():
    return rng.integers(ROWS[1], size=ROWS[0])


def pulled(f):
    return lambda x, g: jax.vjp(f, x)[1](g)


def cross_entropy(x, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(x, -1), labels[:, None], 1).mean()


def layer_norm(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * scale + shift


task("rows/softmax", pulled(lambda x: jax.nn.softmax(x, -1)), rows, rows)
task("rows/log_softmax", pulled(lambda x: jax.nn.log_softmax(x, -1)), rows, rows)
task("rows/cross_entropy", jax.grad(cross_entropy), rows, labels)
vector = lambda: rng.standard_normal(ROWS[1]).astype(np.float32)
task("rows/layer_norm_by_hand", lambda x, s, t, g: jax.vjp(layer_norm, x, s, t)[1](g), rows, vector, vector, rows)


def order_task(name, n, f):
    task(f"order/{name},f32", f, lambda: rng.standard_normal(n).astype(np.float32))


order_task("sort_1e6", 10**6, jnp.sort)
order_task("argsort_1e6", 10**6, jnp.argsort)
order_task("topk_100_of_1e6", 10**6, lambda x: jax.lax.top_k(x, 100)[0])
order_task("cumsum_1e7", 10**7, jnp.cumsum)


def conv(stride=1, padding=0, groups=1):
    options = dict(feature_group_count=groups, dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return lambda x, k: jax.lax.conv_general_dilated(x, k, (stride, stride), [(padding, padding)] * 2, **options)


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def with_backward(name, f, *shapes):
    normal = lambda *s: lambda: rng.standard_normal(s).astype(np.float32)
    task(f"convolution/{name},forward", f, *[normal(*s) for s in shapes])
    result = jax.eval_shape(f, *[jax.ShapeDtypeStruct(s, np.float32) for s in shapes])
    pulled = lambda g, *x: (lambda y, pull: (y, pull(g)))(*jax.vjp(f, *x))
    task(f"convolution/{name},forward+backward", pulled, normal(*result.shape), *[normal(*s) for s in shapes])


IMAGES = (32, 64, 28, 28)
with_backward("3x3,64_64,28x28,batch_32", conv(padding=1), IMAGES, (64, 64, 3, 3))
with_backward("depthwise_3x3,64,28x28,batch_32", conv(padding=1, groups=64), IMAGES, (64, 1, 3, 3))
with_backward("1x1,64_64,28x28,batch_32", conv(), IMAGES, (64, 64, 1, 1))
with_backward("7x7_stride_2,3_64,112x112,batch_8", conv(stride=2, padding=3), (8, 3, 112, 112), (64, 3, 7, 7))
with_backward("max_pool_2,32,28x28,batch_64", max_pool, (64, 32, 28, 28))


# Fused kernels, forward and backward.
WIDE = (4096, 1024)
normal = lambda *shape: lambda: rng.standard_normal(shape).astype(np.float32)


def fused_task(name, f, out, *shapes):
    back = lambda g, *x: jax.vjp(f, *x)[1](g)
    task(f"fused/{name}", back, normal(*out), *[normal(*shape) for shape in shapes])


def rms_norm(x, scale):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def attend(**options):
    # Sequences come before heads.
    return lambda q, k, v: jax.nn.dot_product_attention(q, k, v, **options)


def soft_cross_entropy(x, t):
    return -(t * jax.nn.log_softmax(x, -1)).sum(-1).mean()


def smoothed(x, labels):
    logs = jax.nn.log_softmax(x, -1)
    hit = jnp.take_along_axis(logs, labels[:, None], -1)[:, 0]
    return -(0.9 * hit + 0.1 * logs.mean(-1)).mean()


fused_task("layer_norm", layer_norm, WIDE, WIDE, WIDE[1:], WIDE[1:])
fused_task("rms_norm", rms_norm, WIDE, WIDE, WIDE[1:])
HEADS_512, HEADS_2048 = (512, 8, 64), (2048, 8, 64)
fused_task("attention_512", attend(), HEADS_512, *[HEADS_512] * 3)
fused_task("attention_2048", attend(), HEADS_2048, *[HEADS_2048] * 3)
fused_task("causal_attention_2048", attend(is_causal=True), HEADS_2048, *[HEADS_2048] * 3)
task("fused/attention_2048,forward", attend(), *[normal(*HEADS_2048)] * 3)
task("fused/cross_entropy,smoothed", jax.grad(smoothed), normal(*WIDE), lambda: rng.integers(0, WIDE[1], WIDE[0]))
task("fused/cross_entropy,distributions", jax.grad(soft_cross_entropy), normal(*WIDE), lambda: np.array(jax.nn.softmax(normal(*WIDE)())))
fused_task("einsum_bhqd_bhkd", lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b), (4, 8, 256, 256), *[(4, 8, 256, 64)] * 2)
fused_task("einsum_chain", lambda *x: jnp.einsum("ab,bc,cd,de->ae", *x), (64, 8), (64, 512), (512, 512), (512, 512), (512, 8))


def network(parameters, x, labels):
    for k, (w, b) in enumerate(zip(parameters[::2], parameters[1::2])):
        x = x @ w + b
        x = jnp.maximum(x, 0) if k < 2 else x
    return cross_entropy(x, labels)


def trained(x, labels, *parameters):
    gradients = jax.grad(network)(parameters, x, labels)
    return [p - 0.01 * g for p, g in zip(parameters, gradients)]


WIDTHS = (784, 512, 512, 10)
weight = lambda m, n: lambda: (rng.standard_normal((m, n)) * (2 / m) ** 0.5).astype(np.float32)
parameters = [make for m, n in zip(WIDTHS, WIDTHS[1:]) for make in (weight(m, n), lambda n=n: np.zeros(n, np.float32))]
batch = [lambda: rng.standard_normal((128, 784)).astype(np.float32), lambda: rng.integers(10, size=128)]
task("training/mlp_784_512_512_10,batch_128", trained, *batch, *parameters)


if __name__ == "__main__":
    protocol.serve(f"JAX {jax.__version__}", tasks, lambda n: None, lambda: 0)
