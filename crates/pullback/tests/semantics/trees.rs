//! Trees: the derive macro on every shape of type, paths and their order, and gradients in the type of the input.

use pullback::prelude::*;
use pullback::{ErrorKind, Path};
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;

fn s(v: f64) -> Tensor {
    Tensor::scalar(v)
}

fn values(tree: &impl Tree) -> Vec<f64> {
    tree.leaves().iter().map(|t| t.item()).collect()
}

/// What every implementation owes: one order for all methods, and a way back from the list of leaves.
fn obeys_the_laws(tree: &impl Tree) {
    let leaves = values(tree);
    let mut seen = Vec::new();
    let doubled = tree.map(&mut |t| {
        seen.push(t.item());
        t * 2.0
    });
    assert_eq!(seen, leaves, "map goes in the order of visit");
    assert_eq!(values(&doubled), leaves.iter().map(|v| v * 2.0).collect::<Vec<_>>());
    assert_eq!(doubled.names(), tree.names());
    assert_eq!(tree.flatten().iter().map(Tensor::item).collect::<Vec<_>>(), leaves);
    assert_eq!(values(&tree.unflatten(doubled.flatten()).unwrap()), values(&doubled));
    let named: Vec<(String, f64)> = tree.named().into_iter().map(|(n, t)| (n, t.item())).collect();
    assert_eq!(named, tree.names().into_iter().zip(leaves.iter().copied()).collect::<Vec<_>>());
    let sum = tree.zip(&doubled, |a, b| a + b);
    assert_eq!(values(&sum), leaves.iter().map(|v| v * 3.0).collect::<Vec<_>>());
    tree.same_structure(&doubled).unwrap();
}

#[derive(Tree, Clone, Debug)]
struct Dense {
    weight: Tensor,
    bias: Option<Tensor>,
    rate: f64,
    title: String,
}

fn dense(w: f64, b: Option<f64>) -> Dense {
    Dense { weight: s(w), bias: b.map(s), rate: 0.25, title: "dense".into() }
}

#[derive(Tree)]
struct Pair(Tensor, Box<Dense>);

#[derive(Tree)]
struct Wrapper(Tensor);

#[derive(Tree, Debug, PartialEq)]
struct Unit;

#[derive(Tree, Debug, PartialEq)]
struct NoFields {}

#[derive(Tree, Clone, Debug)]
enum Layer {
    Dense(Dense),
    Scale { factor: Tensor, shift: Tensor },
    Chain(Vec<Layer>),
    Branch(Box<Layer>, Box<Layer>),
    Tanh,
}

#[derive(Tree)]
struct Model {
    layers: Vec<Layer>,
    head: [Dense; 2],
}

#[derive(Tree)]
#[allow(dead_code)]
enum Never {}

#[test]
fn structs_give_their_fields_in_the_order_they_are_written() {
    let layer = dense(1.0, Some(2.0));
    assert_eq!(layer.names(), ["weight", "bias"]);
    assert_eq!(values(&layer), [1.0, 2.0]);
    obeys_the_laws(&layer);
    let pair = Pair(s(3.0), Box::new(layer));
    assert_eq!(pair.names(), ["0", "1.weight", "1.bias"]);
    obeys_the_laws(&pair);
    assert_eq!(Wrapper(s(1.0)).names(), ["0"]);
    assert!(Unit.leaves().is_empty() && NoFields {}.leaves().is_empty());
    assert_eq!(Unit.map(&mut |_| unreachable!()), Unit);
    assert_eq!(NoFields {}.map(&mut |_| unreachable!()), NoFields {});
    assert!(Vec::<Never>::new().leaves().is_empty());
}

#[test]
fn static_fields_are_carried_along() {
    let scaled = dense(1.0, None).map(&mut |t| t * 5.0);
    assert_eq!((scaled.weight.item(), scaled.rate, scaled.title.as_str()), (5.0, 0.25, "dense"));
    assert!(scaled.bias.is_none());
}

#[test]
fn an_enum_has_the_leaves_of_its_active_variant() {
    let layers = [
        Layer::Dense(dense(1.0, None)),
        Layer::Scale { factor: s(2.0), shift: s(3.0) },
        Layer::Tanh,
        Layer::Chain(vec![Layer::Tanh, Layer::Dense(dense(4.0, Some(5.0)))]),
        Layer::Branch(Box::new(Layer::Tanh), Box::new(Layer::Scale { factor: s(6.0), shift: s(7.0) })),
    ];
    assert_eq!(
        layers.names(),
        ["0.0.weight", "1.factor", "1.shift", "3.0.1.0.weight", "3.0.1.0.bias", "4.1.factor", "4.1.shift"]
    );
    assert_eq!(values(&layers), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    obeys_the_laws(&layers);
    let mapped = layers.each_ref().map(|l| l.map(&mut |t| t.clone()));
    assert!(matches!(&mapped[2], Layer::Tanh) && matches!(&mapped[3], Layer::Chain(c) if c.len() == 2));
}

fn apply(layer: &Layer, x: &Tensor) -> Tensor {
    match layer {
        Layer::Dense(d) => {
            let y = x * &d.weight;
            d.bias.iter().fold(y, |y, b| y + b)
        }
        Layer::Scale { factor, shift } => (x + shift) * factor,
        Layer::Chain(all) => all.iter().fold(x.clone(), |x, l| apply(l, &x)),
        Layer::Branch(a, b) => apply(a, x) * apply(b, x),
        Layer::Tanh => x.tanh(),
    }
}

#[test]
fn gradients_reach_the_leaves_of_nested_enums() {
    let model = Model {
        layers: vec![
            Layer::Dense(dense(0.5, Some(0.1))),
            Layer::Chain(vec![Layer::Tanh, Layer::Scale { factor: s(1.5), shift: s(-0.2) }]),
            Layer::Branch(Box::new(Layer::Tanh), Box::new(Layer::Dense(dense(2.0, None)))),
        ],
        head: [dense(0.3, Some(0.7)), dense(-1.1, None)],
    };
    let loss = |m: &Model| {
        let y = m.layers.iter().fold(s(0.8), |x, l| apply(l, &x));
        let heads: Vec<Tensor> = m.head.iter().map(|d| apply(&Layer::Dense(d.clone()), &y)).collect();
        &heads[0] * &heads[1]
    };
    let g: Model = grad(loss)(&model);
    g.same_structure(&model).unwrap();
    for (k, name) in model.names().iter().enumerate() {
        let h = 1e-6;
        let moved = |h: f64| {
            let mut leaves = model.flatten();
            leaves[k] = &leaves[k] + h;
            loss(&model.unflatten(leaves).unwrap()).item()
        };
        let difference = (moved(h) - moved(-h)) / (2.0 * h);
        let derivative = g.leaves()[k].item();
        // Central differences at h = 1e-6 are good to about 1e-10 for values of order one.
        assert!((derivative - difference).abs() < 1e-8, "{name}: {derivative} and {difference}");
    }
}

#[test]
fn the_jvp_of_a_derived_struct_agrees_with_its_gradient() {
    let x = dense(0.5, Some(0.25));
    let t = dense(2.0, Some(-1.0));
    let f = |d: &Dense| (&d.weight * d.bias.as_ref().unwrap()).sin();
    let g = grad(f)(&x);
    let expected: f64 = values(&g.zip(&t, |g, t| g * t)).iter().sum();
    assert!((jvp(f, &x, &t).1.item() - expected).abs() < 1e-15);
}

#[derive(Tree)]
struct Generic<'n, T, U, const N: usize = 2>
where
    U: Copy,
{
    items: [T; N],
    name: &'n str,
    #[tree(skip)]
    tag: U,
    kind: PhantomData<fn() -> U>,
}

trait Family {
    type Member;
}

struct Tensors;

impl Family for Tensors {
    type Member = Tensor;
}

/// Not a tree itself: only the associated type of its parameter has to be one.
#[derive(Tree)]
struct Associated<F: Family> {
    member: F::Member,
    members: Vec<F::Member>,
}

#[derive(Tree)]
struct Recursive<T> {
    value: T,
    next: Option<Box<Recursive<T>>>,
}

#[test]
fn generic_types_need_only_what_their_fields_use() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct NotATree;
    let name = String::from("owned");
    let g = Generic { items: [s(1.0), s(2.0)], name: &name, tag: NotATree, kind: PhantomData };
    assert_eq!(g.names(), ["items.0", "items.1"]);
    obeys_the_laws(&g);
    let copy = g.map(&mut |t| t.clone());
    assert_eq!((copy.name, copy.tag, copy.kind), ("owned", NotATree, PhantomData));

    let a = Associated::<Tensors> { member: s(1.0), members: vec![s(2.0)] };
    assert_eq!(a.names(), ["member", "members.0"]);
    obeys_the_laws(&a);

    let list = Recursive { value: s(1.0), next: Some(Box::new(Recursive { value: s(2.0), next: None })) };
    assert_eq!(list.names(), ["value", "next.value"]);
    obeys_the_laws(&list);
}

/// Names that the generated code uses itself, or that need escaping.
#[derive(Tree)]
struct Awkward {
    path: Tensor,
    f: Tensor,
    r#type: Tensor,
    field_0: Tensor,
    #[tree(skip)]
    r#static: fn() -> f64,
}

/// A type from a macro: its tokens come from two places.
macro_rules! from_a_macro {
    ($name:ident, $field:ident: $t:ty) => {
        #[derive(Tree)]
        struct $name {
            $field: $t,
            f: Tensor,
        }
    };
}
from_a_macro!(Made, inner: Tensor);

#[test]
fn field_names_do_not_clash_with_the_generated_code() {
    let x = Awkward { path: s(1.0), f: s(2.0), r#type: s(3.0), field_0: s(4.0), r#static: || 5.0 };
    assert_eq!(x.names(), ["path", "f", "type", "field_0"]);
    assert_eq!((x.map(&mut |t| t.clone()).r#static)(), 5.0);
    obeys_the_laws(&x);
    assert_eq!(Made { inner: s(1.0), f: s(2.0) }.names(), ["inner", "f"]);
}

#[test]
fn maps_go_in_the_order_of_their_keys() {
    let keys = ["weight", "bias", "scale", "alpha"];
    let sorted: BTreeMap<String, Tensor> =
        keys.iter().enumerate().map(|(k, n)| (n.to_string(), s(k as f64))).collect();
    assert_eq!(sorted.names(), ["alpha", "bias", "scale", "weight"]);
    assert_eq!(values(&sorted), [3.0, 1.0, 2.0, 0.0]);
    obeys_the_laws(&sorted);

    // Numbers are compared as numbers: 10 comes after 9.
    let hashed: HashMap<u32, (Tensor, Tensor)> =
        (0..12).map(|k| (k, (s(k as f64), s(-(k as f64))))).collect();
    let expected: Vec<String> = (0..12).flat_map(|k| [format!("{k}.0"), format!("{k}.1")]).collect();
    assert_eq!(hashed.names(), expected);
    obeys_the_laws(&hashed);
    let g = grad(|m: &HashMap<u32, (Tensor, Tensor)>| &m[&10].0 * &m[&3].1)(&hashed);
    assert_eq!((g[&10].0.item(), g[&3].1.item(), g[&4].0.item()), (-3.0, 10.0, 0.0));
}

#[test]
fn numbers_and_strings_have_no_leaves() {
    let statics = (((), true, 1u8, 2u32, 3u64, 4usize), (5i32, 6i64, 7f32, 8f64), (String::from("a"), "b"));
    assert!(statics.leaves().is_empty());
    assert_eq!(statics.map(&mut |_| unreachable!()), statics);
    let mixed = (2.0, s(3.0), "name");
    assert_eq!(mixed.names(), ["1"]);
    let g = grad(|(k, x, _): &(f64, Tensor, &str)| *k * x.square())(&mixed);
    assert_eq!((g.0, g.1.item(), g.2), (2.0, 12.0, "name"));
}

#[test]
#[should_panic(expected = "grad: the input has no tensors; to differentiate with respect to a number")]
fn a_number_is_not_its_own_gradient() {
    grad(|x: &f64| s(x * x))(&3.0);
}

#[test]
fn a_wrong_number_of_leaves_is_an_error() {
    let x = (s(1.0), vec![s(2.0), s(3.0)]);
    for n in [0, 2, 4] {
        let e = x.unflatten(vec![s(0.0); n]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Structure);
        assert!(
            e.to_string()
                .starts_with(&format!("unflatten: the tree has 3 leaves, but {n} tensors were given [")),
            "{e}"
        );
        assert!(e.location().unwrap().file().ends_with("trees.rs"));
    }
}

#[test]
fn a_difference_in_structure_is_named() {
    let x = dense(1.0, None);
    let message = |a: &Dense, b: &Dense| a.same_structure(b).unwrap_err().to_string();
    assert!(message(&x, &dense(1.0, Some(2.0))).contains("only the second tree has the leaf `bias`"));
    assert!(message(&dense(1.0, Some(2.0)), &x).contains("only the first tree has the leaf `bias`"));
    let scale = Layer::Scale { factor: s(1.0), shift: s(2.0) };
    let e = vec![Layer::Dense(x.clone())].try_zip(&vec![scale], |a, _| a.clone()).err().unwrap();
    assert_eq!((e.kind(), e.op()), (ErrorKind::Structure, Some("zip")));
    assert!(e.to_string().contains("leaf 0 is `0.0.weight` in the first tree and `0.factor` in the second"));
}

#[test]
#[should_panic(expected = "zip: only the first tree has the leaf `2`")]
fn zip_panics_where_structures_differ() {
    vec![s(1.0), s(2.0), s(3.0)].zip(&vec![s(1.0), s(2.0)], |a, _| a.clone());
}

#[test]
fn leaves_need_not_have_equal_shapes_to_be_zipped() {
    let a = (Tensor::ones([2, 3]), s(1.0));
    let b = (s(2.0), Tensor::ones([4]));
    let c = a.zip(&b, |a, b| a + b);
    assert_eq!((c.0.shape(), c.1.shape()), (&[2, 3][..], &[4][..]));
}

/// A tree written by hand stays possible.
struct Tied(Tensor);

impl Tree for Tied {
    fn visit<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, &'a Tensor)) {
        path.at("shared", |p| self.0.visit(p, f));
    }

    fn visit_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Tensor)) {
        self.0.visit_mut(f);
    }

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        Tied(f(&self.0))
    }

    fn statics(&self, _: &mut pullback::Statics) {}
}

#[test]
fn derived_trees_hold_handwritten_ones() {
    #[derive(Tree)]
    struct Outer {
        tied: Tied,
    }
    let x = Outer { tied: Tied(s(3.0)) };
    assert_eq!(x.names(), ["tied.shared"]);
    assert_eq!(grad(|x: &Outer| x.tied.0.square())(&x).tied.0.item(), 6.0);
}

/// Everything that a tree can be made of.
#[derive(Tree, Clone)]
enum Any {
    All {
        one: Tensor,
        list: Vec<Tensor>,
        pair: (Tensor, f64),
        array: [Tensor; 2],
        maybe: Option<Tensor>,
        boxed: Box<Tensor>,
        shared: Arc<Tensor>,
        key: Key,
        sorted: BTreeMap<String, Tensor>,
        hashed: HashMap<u32, Tensor>,
        #[tree(skip)]
        skipped: u8,
    },
    Nothing,
}

fn any() -> Any {
    let number = |k: i32| Tensor::scalar(k as f64);
    Any::All {
        one: number(0),
        list: vec![number(1), number(2)],
        pair: (number(3), 0.5),
        array: [number(4), number(5)],
        maybe: Some(number(6)),
        boxed: Box::new(number(7)),
        shared: Arc::new(number(8)),
        key: Key::new(9),
        sorted: [("b".to_string(), number(11)), ("a".to_string(), number(10))].into(),
        hashed: [(2, number(13)), (1, number(12))].into(),
        skipped: 3,
    }
}

#[test]
fn leaves_to_be_changed_are_the_leaves_in_their_order() {
    let mut x = any();
    let before: Vec<Vec<f64>> = x.leaves().iter().map(|t| t.to_vec()).collect();
    assert_eq!(before.len(), 14);
    assert_eq!(x.leaves_mut().iter().map(|t| t.to_vec::<f64>()).collect::<Vec<_>>(), before);
    for (k, t) in x.leaves_mut().into_iter().enumerate() {
        *t = &*t + k as f64;
    }
    let after = x.leaves().iter().map(|t| t.to_vec::<f64>()).collect::<Vec<_>>();
    for (k, (after, before)) in after.iter().zip(&before).enumerate() {
        assert!(after.iter().zip(before).all(|(a, b)| *a == b + k as f64), "{k}");
    }
    assert!(Any::Nothing.leaves_mut().is_empty());
}

#[test]
fn what_is_shared_is_not_changed_for_others() {
    let shared = Arc::new(s(1.0));
    let mut x = vec![shared.clone(), shared.clone()];
    *x.leaves_mut()[0] += 1.0;
    assert_eq!([shared.item(), x[0].item(), x[1].item()], [1.0, 2.0, 1.0]);
    // Each place has a gradient of its own.
    let g = grad(|x: &Vec<Arc<Tensor>>| &*x[0] * 3.0 + &*x[1] * 5.0)(&x);
    assert_eq!((g[0].item(), g[1].item()), (3.0, 5.0));
}

#[test]
fn leaves_to_be_changed_are_written_in_place() {
    let mut x = vec![Tensor::linspace(0.0, 1.0, 1000)];
    let at = x[0].as_slice::<f64>().unwrap().as_ptr();
    for t in x.leaves_mut() {
        *t += 1.0;
    }
    assert_eq!(x[0].as_slice::<f64>().unwrap().as_ptr(), at);
}

#[test]
fn several_trees_at_once() {
    let tree = |a: f64, b: f64| vec![s(a), s(b)];
    let (x, m, v) = (tree(1.0, 2.0), tree(10.0, 20.0), tree(100.0, 200.0));
    let sum = x.map_with(&[&m, &v], |x, rest| x + rest[0] + rest[1]);
    assert_eq!((sum[0].item(), sum[1].item()), (111.0, 222.0));
    assert_eq!(x.map_with(&[], |x, _| x * 2.0)[1].item(), 4.0);
    let e = x.try_map_with(&[&m, &vec![s(1.0)]], |x, _| x.clone()).unwrap_err();
    assert!(e.to_string().contains("number 1 of the others: only the first tree has the leaf `1`"), "{e}");
}
