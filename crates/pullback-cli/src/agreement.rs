//! The account of a derivative against the transforms of the library, and against the engine of the page.

use crate::account::Listing;
use crate::explain::gradient;
use crate::model::{Formula, Model, Source};
use pullback::Tensor;
use pullback_expr::scalar;

const CASES: &[(&str, &str)] = &[
    ("x1*x2 + sin(x1)", "x1=2,x2=3"),
    ("ln(x1) + x1*x2 - sin(x2)", "x1=2,x2=5"),
    ("(x+y)^2", "x=2,y=3"),
    ("x*y + (x+y)", "x=2,y=3"),
    ("x^2 + x", "x=3"),
    ("x*x*x/(x + 1)^y", "x=1.5,y=-0.5"),
    ("if x > y then x*y else y^3", "x=1,y=2"),
    ("max(x, y, x*y) + hypot(x, y)", "x=1.25,y=0.5"),
    ("sum(i, 1, 4, x[i]^i)", "x=[1,2,3,0.5]"),
    ("let h = tanh(W@x + b); norm(h) + mean(h) + prod(x)", "W=[1,2;3,4;5,6],x=[0.1,-0.2],b=[0.5,0,-0.5]"),
    ("sum((A' @ A)[1,:]) - max(A[:,2])", "A=[1,2;3,4]"),
    ("dot([x, y, x*y], [1, 2, 3])", "x=0.5,y=-1"),
    ("sum([1,2;3,4]*x + y)", "x=3,y=[1,2]"),
];

fn model(text: &str, point: &str) -> (Model, Vec<Tensor>) {
    let formula = Formula::parse(Source { name: "test".into(), text: text.into() }).unwrap();
    let point = scalar::point(point).unwrap();
    let model = formula.model(&point).unwrap();
    let values = model.values(&point).unwrap();
    (model, values)
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| pullback_testing::close(a, b, 1e-12))
}

#[test]
fn adjoints_are_the_librarys_gradient() {
    for (text, point) in CASES {
        let (model, inputs) = model(text, point);
        let listing = Listing::new(&model);
        let values = listing.evaluate(&inputs).unwrap();
        let adjoints = listing.pull(&values, 0).unwrap();
        let (value, g) = gradient(&model, &inputs, 0).unwrap();
        let result = listing.value(&values, model.graph.results()[0]);
        assert_eq!(result.to_vec::<f64>(), value.to_vec::<f64>(), "{text}");
        for (k, g) in g.iter().enumerate() {
            let adjoint = adjoints.adjoints[k].as_ref().map_or(g.zeros_like(), Clone::clone);
            assert!(close(&adjoint.to_vec::<f64>(), &g.to_vec::<f64>()), "{text}: {adjoint} and {g}");
        }
    }
}

#[test]
fn tangents_are_the_librarys_gradient_along_a_direction() {
    for (text, point) in CASES {
        let (model, inputs) = model(text, point);
        let listing = Listing::new(&model);
        let values = listing.evaluate(&inputs).unwrap();
        let direction: Vec<Tensor> = inputs.iter().map(|t| t.ones_like() * 0.5).collect();
        let tangents = listing.push(&values, &direction).unwrap();
        let at = listing.entry(model.graph.results()[0]).unwrap();
        let along: f64 = gradient(&model, &inputs, 0).unwrap().1.iter().map(|g| g.sum().item() * 0.5).sum();
        assert!(close(&[tangents[at].as_ref().unwrap().item()], &[along]), "{text}");
    }
}

#[test]
fn the_engine_of_the_page_says_the_same() {
    for (text, point) in CASES {
        let (model, inputs) = model(text, point);
        let (value, g) = gradient(&model, &inputs, 0).unwrap();
        let program = pullback_expr::parse(text).unwrap();
        let trace = scalar::trace(&program, &scalar::point(point).unwrap()).unwrap();
        assert!(close(&[trace.value(trace.outputs[0].elements[0])], &[value.item()]), "{text}");
        for (input, g) in model.inputs.iter().zip(&g) {
            assert!(close(&trace.gradient(&input.name), &g.to_vec::<f64>()), "{text}: {}", input.name);
        }
    }
}
