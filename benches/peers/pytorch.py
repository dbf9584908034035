"""The tasks of benches/src/eager in PyTorch, written as its users would."""

import torch
import torch.nn.functional as F

import protocol

CHAIN, DEEP = 1000, 100_000
LARGE = (10_000, 1000)
ROWS = (4096, 1000)
FLOATS = {"f32": torch.float32, "f64": torch.float64}

tasks = {}


def task(name, units=1):
    """Adds a function that makes the data and returns what to repeat."""
    return lambda set_up: tasks.__setitem__(name, (units, set_up))


def leaf(*shape, **options):
    return torch.randn(*shape, **options).requires_grad_()


# Chains of small operations ---------------------------------------------------------------------


def chain(a, b):
    y = a
    for _ in range(CHAIN // 2):
        y = y * a
        y = y + b
    return y


def chain_tasks(n):
    def leaves():
        shape = () if n == 1 else (n,)
        make = lambda v: torch.full(shape, v, dtype=torch.float64).requires_grad_()
        return make(0.999), make(0.001)

    @task(f"chain/n={n},forward", CHAIN)
    def _():
        a, b = leaves()
        return lambda: chain(a, b)

    @task(f"chain/n={n},forward+backward", CHAIN)
    def _():
        a, b = leaves()

        def run():
            chain(a, b).sum().backward()
            a.grad = b.grad = None

        return run


for n in (1, 10):
    chain_tasks(n)


@task("chain/deep,forward+backward", DEEP)
def _():
    x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)

    def run():
        y = x
        for _ in range(DEEP):
            y = y * 1.000001
        y.backward()
        x.grad = None

    return run


# Large arrays -----------------------------------------------------------------------------------


def matmul_task(n, name, dtype):
    @task(f"matmul/{n},{name}")
    def _():
        a, b = torch.randn(n, n, dtype=dtype), torch.randn(n, n, dtype=dtype)
        return lambda: a @ b


def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(0.797884 * (x + 0.044715 * x * x * x)))


elementwise = {
    "add": lambda a, b, row, out: a + b,
    "add_(out=)": lambda a, b, row, out: torch.add(a, b, out=out),
    "exp_(out=)": lambda a, b, row, out: torch.exp(a, out=out),
    "mul": lambda a, b, row, out: a * b,
    "mul_add": lambda a, b, row, out: a * b + a,
    "exp": lambda a, b, row, out: a.exp(),
    "tanh": lambda a, b, row, out: a.tanh(),
    "relu": lambda a, b, row, out: a.relu(),
    "where": lambda a, b, row, out: torch.where(a > 0, a, b),
    "gelu_by_hand": lambda a, b, row, out: gelu(a),
    "broadcast_add": lambda a, b, row, out: a + row,
}
reductions = {
    "sum": lambda a, b, row, out: a.sum(),
    "sum_axis_0": lambda a, b, row, out: a.sum(0),
    "sum_axis_1": lambda a, b, row, out: a.sum(1),
    "mean": lambda a, b, row, out: a.mean(),
    "max": lambda a, b, row, out: a.max(),
    "max_axis_1": lambda a, b, row, out: a.amax(1),
}


def large_task(group, what, f, name, dtype):
    @task(f"{group}/{what},{name}")
    def _():
        a, b = torch.rand(*LARGE, dtype=dtype) - 0.5, torch.rand(*LARGE, dtype=dtype) - 0.5
        row, out = torch.rand(LARGE[1], dtype=dtype) - 0.5, torch.empty_like(a)
        return lambda: f(a, b, row, out)


for name, dtype in FLOATS.items():
    for n in (64, 256, 1024):
        matmul_task(n, name, dtype)
    for what, f in elementwise.items():
        large_task("elementwise", what, f, name, dtype)
    for what, f in reductions.items():
        large_task("reduction", what, f, name, dtype)


# Matrices ---------------------------------------------------------------------------------------


def matrix_task(name, n, f):
    @task(f"linalg/{name}_{n},f64")
    def _():
        a = torch.randn(n, n, dtype=torch.float64)
        definite = a @ a.T / n + torch.eye(n, dtype=torch.float64)
        return lambda: f(a, definite)


matrix_task("cholesky", 1024, lambda a, p: torch.linalg.cholesky(p))
matrix_task("solve", 1024, lambda a, p: torch.linalg.solve(a, a[0]))
matrix_task("inv", 1024, lambda a, p: torch.linalg.inv(a))
matrix_task("qr", 512, lambda a, p: torch.linalg.qr(a))
matrix_task("eigh", 256, lambda a, p: torch.linalg.eigh(p))
matrix_task("svd", 256, lambda a, p: torch.linalg.svd(a, full_matrices=False))


@task("linalg/solve_1000_of_8,f64")
def _():
    a, b = torch.randn(1000, 8, 8, dtype=torch.float64), torch.randn(1000, 8, 1, dtype=torch.float64)
    return lambda: torch.linalg.solve(a, b)


# Fourier transforms -----------------------------------------------------------------------------

LONG = 1 << 20


def fourier_task(name, f, make):
    @task(f"fourier/{name}")
    def _():
        x = make()
        return lambda: f(x)


fourier_task("fft,2^20,c64", torch.fft.fft, lambda: torch.randn(LONG, dtype=torch.complex64))
fourier_task("fft,1024x1024,c64", torch.fft.fft, lambda: torch.randn(1024, 1024, dtype=torch.complex64))
fourier_task("fft2,1024x1024,c64", torch.fft.fft2, lambda: torch.randn(1024, 1024, dtype=torch.complex64))
fourier_task("rfft,2^20,f32", torch.fft.rfft, lambda: torch.randn(LONG))


@task("fourier/filter,2^20,f32,forward+backward")
def _():
    x, h, g = leaf(LONG), torch.fft.rfft(torch.randn(LONG)), torch.randn(LONG)

    def run():
        torch.fft.irfft(torch.fft.rfft(x) * h, LONG).backward(g)
        x.grad = None

    return run


# Rows, forward and backward ---------------------------------------------------------------------


def row_task(name, f):
    @task(f"rows/{name}")
    def _():
        x, g = leaf(*ROWS), torch.randn(*ROWS)

        def run():
            f(x).backward(g)
            x.grad = None

        return run


row_task("softmax", lambda x: torch.softmax(x, -1))
row_task("log_softmax", lambda x: torch.log_softmax(x, -1))


@task("rows/cross_entropy")
def _():
    x, labels = leaf(*ROWS), torch.randint(ROWS[1], (ROWS[0],))

    def run():
        F.cross_entropy(x, labels).backward()
        x.grad = None

    return run


def layer_norm(x, scale, shift):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred * (variance + 1e-5).rsqrt() * scale + shift


@task("rows/layer_norm_by_hand")
def _():
    x, scale, shift, g = leaf(*ROWS), leaf(ROWS[1]), leaf(ROWS[1]), torch.randn(*ROWS)

    def run():
        layer_norm(x, scale, shift).backward(g)
        x.grad = scale.grad = shift.grad = None

    return run


@task("rows/embedding")
def _():
    table, index, g = leaf(20_000, 256), torch.randint(20_000, (8192,)), torch.randn(8192, 256)

    def run():
        F.embedding(index, table).backward(g)
        table.grad = None

    return run


@task("rows/gather")
def _():
    x, index, g = leaf(*ROWS), torch.randint(ROWS[1], (ROWS[0], 64)), torch.randn(ROWS[0], 64)

    def run():
        x.gather(1, index).backward(g)
        x.grad = None

    return run


# Orders of one long row ------------------------------------------------------------------------


def order_task(name, n, f):
    @task(f"order/{name},f32")
    def _():
        x = torch.randn(n)
        return lambda: f(x)


order_task("sort_1e6", 10**6, lambda x: x.sort(-1).values)
order_task("argsort_1e6", 10**6, lambda x: x.argsort(-1))
order_task("topk_100_of_1e6", 10**6, lambda x: x.topk(100, -1).values)
order_task("cumsum_1e7", 10**7, lambda x: x.cumsum(-1))


# Convolutions -----------------------------------------------------------------------------------


def with_backward(name, f, *shapes):
    """Forward alone, and forward and backward with a cotangent."""

    @task(f"convolution/{name},forward")
    def _():
        x = [torch.randn(*s) for s in shapes]
        return lambda: f(*x)

    @task(f"convolution/{name},forward+backward")
    def _():
        x = [leaf(*s) for s in shapes]
        g = torch.randn_like(f(*x))

        def run():
            f(*x).backward(g)
            for t in x:
                t.grad = None

        return run


IMAGES = (32, 64, 28, 28)
with_backward("3x3,64_64,28x28,batch_32", lambda x, k: F.conv2d(x, k, padding=1), IMAGES, (64, 64, 3, 3))
with_backward("depthwise_3x3,64,28x28,batch_32", lambda x, k: F.conv2d(x, k, padding=1, groups=64), IMAGES, (64, 1, 3, 3))
with_backward("1x1,64_64,28x28,batch_32", F.conv2d, IMAGES, (64, 64, 1, 1))
with_backward("7x7_stride_2,3_64,112x112,batch_8", lambda x, k: F.conv2d(x, k, padding=3, stride=2), (8, 3, 112, 112), (64, 3, 7, 7))
with_backward("max_pool_2,32,28x28,batch_64", lambda x: F.max_pool2d(x, 2), (64, 32, 28, 28))


# Fused kernels, forward and backward --------------------------------------------------------------

WIDE = (4096, 1024)


def fused_task(name, f, *shapes):
    @task(f"fused/{name}")
    def _():
        x = [leaf(*shape) for shape in shapes]
        g = torch.randn_like(f(*x))

        def run():
            f(*x).backward(g)
            for t in x:
                t.grad = None

        return run


attend = F.scaled_dot_product_attention
fused_task("layer_norm", lambda x, w, b: F.layer_norm(x, WIDE[1:], w, b), WIDE, WIDE[1:], WIDE[1:])
fused_task("rms_norm", lambda x, w: F.rms_norm(x, WIDE[1:], w, 1e-5), WIDE, WIDE[1:])
# PyTorch takes its flash kernel for tensors of four axes.
fused_task("attention_512", attend, *[(1, 8, 512, 64)] * 3)
fused_task("attention_2048", attend, *[(1, 8, 2048, 64)] * 3)
fused_task("causal_attention_2048", lambda q, k, v: attend(q, k, v, is_causal=True), *[(1, 8, 2048, 64)] * 3)


@task("fused/attention_2048,forward")
def _():
    x = [torch.randn(1, 8, 2048, 64) for _ in range(3)]
    return lambda: attend(*x)


def loss_task(name, f, targets):
    @task(f"fused/cross_entropy,{name}")
    def _():
        x, t = leaf(*WIDE), targets()

        def run():
            f(x, t).backward()
            x.grad = None

        return run


loss_task("smoothed", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), lambda: torch.randint(WIDE[1], (WIDE[0],)))
loss_task("distributions", F.cross_entropy, lambda: torch.randn(*WIDE).softmax(-1))
fused_task("einsum_bhqd_bhkd", lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), *[(4, 8, 256, 64)] * 2)
fused_task("einsum_chain", lambda *x: torch.einsum("ab,bc,cd,de->ae", *x), (64, 512), (512, 512), (512, 512), (512, 8))

# Training ---------------------------------------------------------------------------------------


@task("training/mlp_784_512_512_10,batch_128")
def _():
    widths, batch = (784, 512, 512, 10), 128
    weights = [(torch.randn(m, n) * (2 / m) ** 0.5).requires_grad_() for m, n in zip(widths, widths[1:])]
    biases = [torch.zeros(n, requires_grad=True) for n in widths[1:]]
    x, labels = torch.randn(batch, widths[0]), torch.randint(10, (batch,))

    def run():
        y = x
        for k, (w, b) in enumerate(zip(weights, biases)):
            y = torch.addmm(b, y, w)
            if k + 1 < len(weights):
                y = y.relu()
        F.cross_entropy(y, labels).backward()
        with torch.no_grad():
            for p in weights + biases:
                p -= 0.01 * p.grad
                p.grad = None

    return run


def memory():
    """The peak of one pass through a deep network, as in benches/src/memory.rs."""
    layers, width, batch = 50, 512, 1024
    weights = [(torch.randn(width, width) * 0.06).requires_grad_() for _ in range(layers)]
    x = torch.randn(batch, width)

    def loss(weights):
        y = x
        for w in weights:
            y = torch.tanh(y @ w)
        return y.square().mean()

    torch.autograd.grad(loss(weights[:1]), weights[:1])
    before = protocol.reset_peak()
    gradients = torch.autograd.grad(loss(weights), weights)
    peak = protocol.status("VmHWM:")
    assert len(gradients) == len(weights)
    return peak - before


protocol.serve(f"PyTorch {torch.__version__}", tasks, torch.set_num_threads, memory)
