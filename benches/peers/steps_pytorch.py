"""The tasks of benches/src/compiled in PyTorch: as they run, or (with the argument `compiled`) through torch.compile."""

import sys

import torch
import torch.nn.functional as F

import protocol

COMPILED = "compiled" in sys.argv[1:]
compiled = torch.compile if COMPILED else lambda f: f
tasks = {}


def task(name):
    return lambda set_up: tasks.__setitem__(name, (1, set_up))


# A formula over ten million numbers ------------------------------------------------------------


def formula(x):
    return (torch.sin(x) * torch.exp(-x.square()) + torch.tanh(x * 0.5)).sum()


@task("elementwise_10M/value")
def _():
    x, f = torch.randn(10_000_000), compiled(formula)
    return lambda: f(x).item()


@task("elementwise_10M/value+gradient")
def _():
    x, f = torch.randn(10_000_000, requires_grad=True), compiled(formula)

    def run():
        x.grad = None
        f(x).backward()

    return run


# Networks ---------------------------------------------------------------------------------------


def of_model(name, make, loss, decay):
    """The loss, its gradient, and a step with Adam."""

    @task(f"{name}/value")
    def _():
        model, batch = make()
        f = compiled(lambda: loss(model, batch))

        def run():
            with torch.no_grad():
                f().item()

        return run

    @task(f"{name}/value+gradient")
    def _():
        model, batch = make()
        f = compiled(lambda: loss(model, batch))

        def run():
            for p in model.parameters():
                p.grad = None
            f().backward()

        return run

    @task(f"{name}/step")
    def _():
        model, batch = make()
        f = compiled(lambda: loss(model, batch))
        # The fused optimiser is the fastest that PyTorch has on a CPU.
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=decay, fused=True)

        def run():
            optimiser.zero_grad(set_to_none=True)
            f().backward()
            optimiser.step()

        return run


def perceptron(widths, activation):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(a, b), activation()]
    return torch.nn.Sequential(*layers[:-1])


def images():
    model = perceptron([784, 512, 512, 10], torch.nn.ReLU)
    return model, (torch.randn(128, 784), torch.randint(0, 10, (128,)))


def pictures():
    block = lambda a, b: [torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    model = torch.nn.Sequential(*block(1, 32), *block(32, 64), torch.nn.Flatten(), torch.nn.Linear(3136, 10))
    return model, (torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)))


def points():
    return perceptron([16, 32, 32, 1], torch.nn.Tanh), (torch.randn(16, 16), torch.randn(16, 1))


LAYERS, WIDTH, HEADS, CONTEXT, BATCH, CHARACTERS = 4, 256, 8, 128, 8, 65


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.attention, self.projection = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x):
        q, k, v = self.attention(x).view(BATCH, CONTEXT, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)

    def forward(self, x):
        x = x + self.projection(self.attend(self.before(x)))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(CHARACTERS, WIDTH), torch.nn.Embedding(CONTEXT, WIDTH)
        self.layers = torch.nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.last, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, CHARACTERS)

    def forward(self, text):
        x = self.tokens(text) + self.positions.weight
        return self.head(self.last(self.layers(x)))


def characters():
    text = lambda: torch.randint(0, CHARACTERS, (BATCH, CONTEXT))
    return Transformer(), (text(), text())


of_model(
    "mlp_784_512_512_10,batch_128", images, lambda model, b: F.cross_entropy(model(b[0]), b[1]), 0.0
)
of_model("cnn_28x28_32_64,batch_64", pictures, lambda model, b: F.cross_entropy(model(b[0]), b[1]), 0.0)
of_model("tanh_16_32_32_1,batch_16", points, lambda model, b: F.mse_loss(model(b[0]), b[1]), 0.0)
of_model(
    "transformer", characters, lambda model, b: F.cross_entropy(model(b[0]).flatten(0, 1), b[1].flatten()), 0.01
)

name = f"PyTorch {torch.__version__}" + (" (torch.compile)" if COMPILED else "")
protocol.serve(name, tasks, torch.set_num_threads, keep=True)
