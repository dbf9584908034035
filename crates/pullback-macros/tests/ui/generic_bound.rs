use pullback::prelude::*;

struct Config;

#[derive(Tree)]
struct Wrapper<T> {
    inner: Vec<T>,
}

fn needs_a_tree(_: impl Tree) {}

fn main() {
    needs_a_tree(Wrapper { inner: vec![Config] });
}
