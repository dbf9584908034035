use pullback::prelude::*;

struct Handle;

#[derive(Tree)]
struct Layer {
    weight: Tensor,
    #[tree(skip)]
    handle: Handle,
}

fn main() {}
