use pullback::Tree;

#[derive(Tree)]
union Either {
    a: u32,
    b: f32,
}

fn main() {}
