use pullback::prelude::*;

struct Config;

#[derive(Tree)]
struct Layer {
    weight: Tensor,
    config: Config,
}

#[derive(Tree)]
enum Choice {
    Shared(std::sync::Arc<Tensor>),
}

fn main() {}
