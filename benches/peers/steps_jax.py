"""The tasks of benches/src/compiled in JAX, under jit."""

import jax
import jax.numpy as jnp

import protocol

tasks = {}


def task(name):
    return lambda set_up: tasks.__setitem__(name, (1, set_up))


def random(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape, dtype=jnp.float32)


def repeated(f, *args):
    """Calls f and waits for all results."""
    return lambda: jax.block_until_ready(f(*args))


# A formula over ten million numbers ------------------------------------------------------------


def formula(x):
    return (jnp.sin(x) * jnp.exp(-jnp.square(x)) + jnp.tanh(x * 0.5)).sum()


task("elementwise_10M/value")(lambda: repeated(jax.jit(formula), random(1, 10_000_000)))
task("elementwise_10M/value+gradient")(lambda: repeated(jax.jit(jax.value_and_grad(formula)), random(1, 10_000_000)))

# Networks ---------------------------------------------------------------------------------------


def adam(p, g, state, decay, rate=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    m, v, n = state
    n = n + 1
    m = jax.tree.map(lambda m, g: m * b1 + g * (1 - b1), m, g)
    v = jax.tree.map(lambda v, g: v * b2 + jnp.square(g) * (1 - b2), v, g)
    c1, c2 = 1 - b1**n, 1 - b2**n
    step = lambda p, m, v: p * (1 - rate * decay) - rate * (m / c1) / (jnp.sqrt(v / c2) + eps)
    return jax.tree.map(step, p, m, v), (m, v, n)


def of_model(name, make, batch, loss, decay):
    task(f"{name}/value")(lambda: repeated(jax.jit(loss), make(), batch()))
    task(f"{name}/value+gradient")(lambda: repeated(jax.jit(jax.value_and_grad(loss)), make(), batch()))

    @task(f"{name}/step")
    def _():
        def step(p, state, b):
            value, g = jax.value_and_grad(loss)(p, b)
            return *adam(p, g, state, decay), value

        f, p, b = jax.jit(step, donate_argnums=(0, 1)), make(), batch()
        zeros = lambda: jax.tree.map(jnp.zeros_like, p)
        held = [p, (zeros(), zeros(), jnp.float32(0))]

        def run():
            held[0], held[1], value = f(held[0], held[1], b)
            jax.block_until_ready((held, value))

        return run


def layers(*widths):
    pairs = zip(widths, widths[1:])
    return [(random(k, a, b) * (2 / a) ** 0.5, jnp.zeros(b)) for k, (a, b) in enumerate(pairs)]


def network(p, x, activation):
    for w, b in p[:-1]:
        x = activation(x @ w + b)
    return x @ p[-1][0] + p[-1][1]


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


labels = lambda n, most: jax.random.randint(jax.random.key(8), (n,), 0, most)

of_model(
    "mlp_784_512_512_10,batch_128",
    lambda: layers(784, 512, 512, 10),
    lambda: (random(7, 128, 784), labels(128, 10)),
    lambda p, b: cross_entropy(network(p, b[0], jax.nn.relu), b[1]),
    0.0,
)
of_model(
    "tanh_16_32_32_1,batch_16",
    lambda: layers(16, 32, 32, 1),
    lambda: (random(7, 16, 16), random(8, 16, 1)),
    lambda p, b: jnp.square(network(p, b[0], jnp.tanh) - b[1]).mean(),
    0.0,
)



def convolutional(p, x):
    for k, b in p[:-1]:
        x = jax.lax.conv_general_dilated(x, k, (1, 1), [(1, 1)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW"))
        x = jax.nn.relu(x + b)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(x.shape[0], -1) @ p[-1][0] + p[-1][1]


def filters():
    first = random(1, 32, 1, 3, 3) * (2 / 9) ** 0.5, jnp.zeros((32, 1, 1))
    second = random(2, 64, 32, 3, 3) * (2 / 288) ** 0.5, jnp.zeros((64, 1, 1))
    return [first, second, (random(3, 3136, 10) * (2 / 3136) ** 0.5, jnp.zeros(10))]


of_model(
    "cnn_28x28_32_64,batch_64",
    filters,
    lambda: (random(7, 64, 1, 28, 28), labels(64, 10)),
    lambda p, b: cross_entropy(convolutional(p, b[0]), b[1]),
    0.0,
)

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, CHARACTERS = 4, 256, 8, 128, 8, 65


def linear(seed, a, b):
    return random(seed, a, b) * 0.02, jnp.zeros(b)


def norm():
    return jnp.ones(WIDTH), jnp.zeros(WIDTH)


def model():
    layer = lambda k: {
        "before": norm(),
        "attention": linear(k, WIDTH, 3 * WIDTH),
        "projection": linear(k + 1, WIDTH, WIDTH),
        "between": norm(),
        "up": linear(k + 2, WIDTH, 4 * WIDTH),
        "down": linear(k + 3, 4 * WIDTH, WIDTH),
    }
    return {
        "tokens": random(90, CHARACTERS, WIDTH) * 0.02,
        "positions": random(91, CONTEXT, WIDTH) * 0.02,
        "layers": [layer(4 * k) for k in range(LAYERS)],
        "last": norm(),
        "head": linear(92, WIDTH, CHARACTERS),
    }


def normed(p, x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * p[0] + p[1]


def applied(p, x):
    return x @ p[0] + p[1]


def attend(p, x, mask):
    size = WIDTH // HEADS
    q, k, v = applied(p["attention"], x).reshape(BATCH, CONTEXT, 3, HEADS, size).transpose(2, 0, 3, 1, 4)
    weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) * size**-0.5 + mask)
    return (weights @ v).transpose(0, 2, 1, 3).reshape(BATCH, CONTEXT, WIDTH)


def text_loss(p, b):
    at = jnp.arange(CONTEXT)
    mask = jnp.where(at[None, :] > at[:, None], -1e9, 0.0).astype(jnp.float32)
    x = p["tokens"][b[0]].reshape(BATCH, CONTEXT, WIDTH) + p["positions"]
    for layer in p["layers"]:
        x = x + applied(layer["projection"], attend(layer, normed(layer["before"], x), mask))
        h = jax.nn.gelu(applied(layer["up"], normed(layer["between"], x)), approximate=False)
        x = x + applied(layer["down"], h)
    logits = applied(p["head"], normed(p["last"], x)).reshape(BATCH * CONTEXT, CHARACTERS)
    return cross_entropy(logits, b[1])


text = lambda: labels(BATCH * CONTEXT, CHARACTERS)
of_model("transformer", model, lambda: (text(), text()), text_loss, 0.01)


# XLA takes as many threads as there are processors that the process may use: benches/run sees to that.
protocol.serve(f"JAX {jax.__version__}", tasks, lambda n: None, keep=True)
