use pullback::prelude::*;

struct Config;

#[derive(Tree)]
struct Layer {
    weight: Tensor,
    config: Config,
}

fn main() {}
