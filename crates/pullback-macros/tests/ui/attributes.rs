use pullback::prelude::*;

#[derive(Tree)]
struct Options {
    x: Tensor,
    #[tree(skpi)]
    a: u32,
    #[tree]
    b: u32,
    #[tree()]
    c: u32,
    #[tree = "skip"]
    d: u32,
    #[tree(skip, skip)]
    e: u32,
    #[tree(skip = true)]
    f: u32,
    #[tree("skip")]
    g: u32,
}

#[derive(Tree)]
#[tree(skip)]
struct OnTheType {
    x: Tensor,
}

#[derive(Tree)]
enum OnAVariant {
    #[tree(skip)]
    A(Tensor),
    B,
}

fn main() {}
