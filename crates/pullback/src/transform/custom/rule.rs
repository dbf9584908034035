//! A user's function with its own pullback, pushforward and batching.

use super::super::checkpoint::avals;
use super::super::{Tree, from_leaves};
use super::{Batching, Body, Custom, Rule};
use crate::Tensor;
use crate::error::{Result, err, or_panic};
use std::panic::Location;
use std::sync::{Arc, Mutex};

/// A function with derivative rules of its own, made by [`custom_rule`].
pub struct CustomRule<X, Y> {
    f: Function<X, Y>,
    pullback: Option<TreeRule<X, Y, Y, X>>,
    pushforward: Option<TreeRule<X, Y, X, Y>>,
    batching: Option<Function<X, Y>>,
}

type Function<X, Y> = Arc<dyn Fn(&X) -> Y + Send + Sync>;
type TreeRule<X, Y, A, B> = Arc<dyn Fn(&X, &Y, &A) -> B + Send + Sync>;

/// The function `f` with derivative rules that the user gives, for instance because they are cheaper or more accurate than what follows from
/// its operations, or because a derivative is to be something else.
///
/// Transforms do not look into `f`. Reverse mode calls the pullback, forward mode the pushforward; one of them is
/// enough, as each can be had from the other by transposition. Rules are functions of tensors: if they are to be differentiated
/// again, they are. Under [`vmap`](crate::vmap) function and rules are mapped, unless [`batching`](CustomRule::batching) says
/// better.
///
/// Function and rules live as long as the record of their use, so they must own what they capture. A
/// tensor that is differentiated must be an input: if the function has captured one, it is an error.
///
/// ```
/// use pullback::{custom_rule, prelude::*};
/// // ln(1 + exp(x)), the derivative of which would overflow.
/// let softplus = custom_rule(|x: &Tensor| (1.0 + x.exp()).ln()).pullback(|x, _y, g| g * x.sigmoid());
/// let g = grad(|x: &Tensor| softplus.call(x))(&Tensor::scalar(1000.0));
/// assert_eq!(g.item(), 1.0);
/// ```
#[must_use]
pub fn custom_rule<X: Tree, Y: Tree>(f: impl Fn(&X) -> Y + Send + Sync + 'static) -> CustomRule<X, Y> {
    CustomRule { f: Arc::new(f), pullback: None, pushforward: None, batching: None }
}

/// What one application knows of the structure of inputs and outputs.
struct Shapes<X, Y> {
    x: X,
    /// The last result.
    y: Mutex<Option<Arc<Y>>>,
}

impl<X: Tree, Y: Tree> Shapes<X, Y> {
    fn x(&self, leaves: &[Tensor]) -> X {
        from_leaves(&self.x, leaves.iter().cloned())
    }

    fn last(&self) -> Arc<Y> {
        let last = self.y.lock().unwrap_or_else(|e| e.into_inner());
        last.clone().expect("the function has run")
    }

    fn y(&self, leaves: impl IntoIterator<Item = Tensor>) -> Y {
        from_leaves(&*self.last(), leaves)
    }

    fn run(&self, f: &Function<X, Y>, leaves: &[Tensor]) -> Result<Vec<Tensor>> {
        let y = f(&self.x(leaves));
        let outputs = list(&y);
        // Of the last result only the structure is read; its tensors need not stay.
        let structure = y.map(&mut |_| Tensor::scalar(0.0));
        *self.y.lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::new(structure));
        Ok(outputs)
    }
}

fn list<T: Tree>(t: &T) -> Vec<Tensor> {
    t.leaves().into_iter().cloned().collect()
}

impl<X, Y> CustomRule<X, Y>
where
    X: Tree + Send + Sync + 'static,
    Y: Tree + Send + Sync + 'static,
{
    /// The pullback: from the input, the output and the cotangent of the output to the cotangent of the input, in which it is linear.
    #[must_use]
    pub fn pullback(mut self, rule: impl Fn(&X, &Y, &Y) -> X + Send + Sync + 'static) -> Self {
        self.pullback = Some(Arc::new(rule));
        self
    }

    /// The pushforward: from the input, the output and the tangent of the input to the tangent of the output, in which it is linear.
    ///
    /// ```
    /// use pullback::{custom_rule, prelude::*};
    /// let cube = custom_rule(|x: &Tensor| x * x * x).pushforward(|x, _y, t| x.square() * 3.0 * t);
    /// assert_eq!(jvp(|x: &Tensor| cube.call(x), &Tensor::scalar(2.0), &Tensor::scalar(1.0)).1.item(), 12.0);
    /// // The pullback is its transpose.
    /// assert_eq!(grad(|x: &Tensor| cube.call(x))(&Tensor::scalar(2.0)).item(), 12.0);
    /// ```
    #[must_use]
    pub fn pushforward(mut self, rule: impl Fn(&X, &Y, &X) -> Y + Send + Sync + 'static) -> Self {
        self.pushforward = Some(Arc::new(rule));
        self
    }

    /// The function on many examples at once, which lie along the first axis of every tensor of the input and of the output.
    #[must_use]
    pub fn batching(mut self, f: impl Fn(&X) -> Y + Send + Sync + 'static) -> Self {
        self.batching = Some(Arc::new(f));
        self
    }

    /// Calls the function.
    #[track_caller]
    pub fn call(&self, x: &X) -> Y {
        let location = Location::caller();
        let _entered = crate::location::entered(location);
        let y = crate::location::with_caller(location, || self.apply(x));
        or_panic(y.map_err(|e| e.in_op("custom_rule").at(location)))
    }

    /// As a function, for other transforms to take.
    ///
    /// ```
    /// use pullback::{custom_rule, prelude::*};
    /// let f = custom_rule(|x: &Tensor| x.square()).pullback(|x, _, g| g * x * 2.0).into_fn();
    /// assert_eq!(grad(grad(f))(&Tensor::scalar(3.0)).item(), 2.0);
    /// ```
    #[track_caller]
    pub fn into_fn(self) -> impl Fn(&X) -> Y {
        let location = Location::caller();
        move |x| {
            let _entered = crate::location::entered(location);
            let y = crate::location::with_caller(location, || self.apply(x));
            or_panic(y.map_err(|e| e.in_op("custom_rule").at(location)))
        }
    }

    fn apply(&self, x: &X) -> Result<Y> {
        let shapes = Arc::new(Shapes { x: x.map(&mut |_| Tensor::scalar(0.0)), y: Mutex::new(None) });
        let function = |f: &Function<X, Y>| -> Body {
            let (f, shapes) = (f.clone(), shapes.clone());
            Arc::new(move |leaves| shapes.run(&f, leaves))
        };
        let pullback = self.pullback.clone().map(|rule| -> Rule {
            let shapes = shapes.clone();
            Arc::new(move |x, y, g| {
                Ok(list(&rule(&shapes.x(x), &shapes.y(y.to_vec()), &shapes.y(g.to_vec()))))
            })
        });
        let pushforward = self.pushforward.clone().map(|rule| -> Rule {
            let shapes = shapes.clone();
            Arc::new(move |x, y, t| Ok(list(&rule(&shapes.x(x), &shapes.y(y.to_vec()), &shapes.x(t)))))
        });
        let custom = Custom {
            name: "custom_rule",
            inputs: avals(x),
            outputs: None,
            body: function(&self.f),
            pullback,
            pushforward,
            batching: self.batching.as_ref().map_or(Batching::Body, |f| Batching::Own(function(f))),
        };
        let outputs = custom.apply(&x.leaves())?;
        let expected = shapes.last().leaves().len();
        if outputs.len() != expected {
            return Err(err!(Structure, "{} tensors came back instead of {expected}", outputs.len()));
        }
        Ok(shapes.y(outputs))
    }
}
