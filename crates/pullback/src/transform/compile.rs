//! Functions with a second life as static graphs: traced once, optimised as a whole, run many times.

mod cache;
mod executable;
mod explain;
mod run;

pub use executable::Executable;
pub use explain::Explanation;

use super::{Tree, from_leaves};
use crate::backend::Profile;
use crate::error::{Result, caught, err, or_panic};
use crate::graph::{Graph, trace_leaves};
use crate::location::entered;
use crate::opt::{Options, traced};
use crate::tape::{detects_anomaly, outside_of_scopes};
use crate::tensor::Tensor;
use cache::{Cache, Entry, Signature};
use run::CompiledGraph;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

/// A function that runs as a static graph: see [`compile`].
pub struct Compiled<X, Y, F> {
    f: F,
    cache: Mutex<Cache<Y>>,
    donated: Vec<usize>,
    options: Options,
    location: &'static Location<'static>,
    of: PhantomData<fn(&X)>,
}

/// The same function, run as a static graph. At the first call with inputs of given shapes, types and static parts it is traced, optimised
/// and planned; later calls run the plan. Every transform applies to it, and it may be compiled inside of another.
///
/// The function runs only while it is traced: printing and other side effects happen once for each signature, and values cannot be
/// read or branched on (use [`cond`](crate::cond) or [`Tensor::where_`]). Tensors that it captures are inputs of the graph, and get their gradients.
/// Random numbers that it draws from a captured [`Key`](crate::Key) are drawn once; from one that is an argument, anew in each call.
///
/// ```
/// use pullback::prelude::*;
/// let loss = |(w, x): &(Tensor, Tensor)| x.matmul(w).tanh().square().mean();
/// let step = compile(value_and_grad(loss));
/// let input = (Tensor::ones([3, 2]), Tensor::ones([4, 3]));
/// let (value, gradient) = step.call(&input);
/// assert!((value.item() - 3f64.tanh().powi(2)).abs() < 1e-12);
/// assert_eq!(gradient.0.shape(), [3, 2]);
/// step.call(&input);
/// assert_eq!(step.traces(), 1);
/// ```
#[must_use]
#[track_caller]
pub fn compile<X: Tree, Y: Tree, F: Fn(&X) -> Y>(f: F) -> Compiled<X, Y, F> {
    let cache = Mutex::new(Cache::new());
    let options = Options::default();
    Compiled { f, cache, donated: Vec::new(), options, location: Location::caller(), of: PhantomData }
}

impl<X: Tree, Y: Tree, F: Fn(&X) -> Y> Compiled<X, Y, F> {
    /// Lets [`call_owned`](Compiled::call_owned) overwrite argument `k` of a tuple (or field `k` of any tree, in order): a result of the same
    /// type takes its memory. So parameters and the state of an optimiser are updated in place.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let step = compile(|(w, g): &(Tensor, Tensor)| w - g * 0.1).donate(0);
    /// let mut w = Tensor::ones([1000]);
    /// for _ in 0..3 {
    ///     w = step.call_owned((w, Tensor::ones([1000])));
    /// }
    /// assert!((w.sum().item() - 700.0).abs() < 1e-9);
    /// ```
    #[must_use]
    pub fn donate(mut self, k: usize) -> Self {
        self.donated.push(k);
        self
    }

    /// What the optimiser may do: rules that are not exact, less memory for more time.
    ///
    /// ```
    /// use pullback::{opt::Options, prelude::*};
    /// let f = compile(|x: &Tensor| x - x).with(Options { fast_math: true, ..Options::default() });
    /// assert_eq!(f.call(&Tensor::scalar(f64::INFINITY)).item(), 0.0);
    /// ```
    #[must_use]
    pub fn with(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// How many signatures are kept (64 unless this says otherwise); the one that was not used for longest goes first.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| x.exp()).keep(1);
    /// (1..4).for_each(|n| drop(f.call(&Tensor::zeros([n]))));
    /// assert_eq!(f.traces(), 3);
    /// ```
    #[must_use]
    pub fn keep(self, signatures: usize) -> Self {
        self.cache().limit(signatures);
        self
    }

    /// The result. Panics with what [`try_call`](Compiled::try_call) returns as an error.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| (x.sin() * x).sum());
    /// let x = Tensor::from([0.1, 0.2]);
    /// assert!((f.call(&x) - (x.sin() * &x).sum()).item().abs() < 1e-15);
    /// ```
    #[track_caller]
    pub fn call(&self, x: &X) -> Y {
        or_panic(self.try_call(x))
    }

    /// The result, or the error that came up while the function was traced or run.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| if x.item() > 0.0 { x.clone() } else { -x });
    /// let e = f.try_call(&Tensor::scalar(1.0)).unwrap_err();
    /// assert!(e.to_string().contains("use cond"));
    /// ```
    #[track_caller]
    pub fn try_call(&self, x: &X) -> Result<Y> {
        let location = Location::caller();
        let _entered = entered(location);
        if detects_anomaly() {
            return self.as_written(x).map_err(|e| e.in_op("compile").at(location));
        }
        let run = self.entry(x).and_then(|entry| {
            let leaves = x.leaves();
            let outputs =
                entry.block.apply(&leaves.into_iter().chain(&entry.captured).collect::<Vec<_>>())?;
            Ok(from_leaves(&entry.structure, outputs))
        });
        run.map_err(|e| e.in_op("compile").at(location))
    }

    /// The result of a call that hands its input over, so that [donated](Compiled::donate) tensors nobody else holds are overwritten.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| x + 1.0).donate(0);
    /// let x = Tensor::ones([100]);
    /// let kept = x.clone();
    /// assert_eq!(f.call_owned(x).sum().item(), 200.0);
    /// assert_eq!(kept.sum().item(), 100.0, "somebody else holds it, so it was copied");
    /// ```
    #[track_caller]
    pub fn call_owned(&self, x: X) -> Y {
        or_panic(self.try_call_owned(x))
    }

    /// [`call_owned`](Compiled::call_owned), with an error instead of a panic.
    #[track_caller]
    pub fn try_call_owned(&self, x: X) -> Result<Y> {
        let location = Location::caller();
        let _entered = entered(location);
        if detects_anomaly() {
            return self.as_written(&x).map_err(|e| e.in_op("compile").at(location));
        }
        let run = self.entry(&x).and_then(|entry| {
            let mut leaves = x.flatten();
            drop(x);
            leaves.extend(entry.captured.iter().cloned());
            Ok(from_leaves(&entry.structure, entry.block.apply_owned(leaves)?))
        });
        run.map_err(|e| e.in_op("compile").at(location))
    }

    /// The result of the function itself, whose operations are seen one by one: in a plan it is too late to say which of them
    /// has made a cotangent that is not finite.
    fn as_written(&self, x: &X) -> Result<Y> {
        caught(|| (self.f)(x))
    }

    /// How often the function has been traced: once for each signature, and again for one that had to be forgotten.
    pub fn traces(&self) -> usize {
        self.cache().traces()
    }

    /// Why the function was traced again, each time after the first: what was new about the inputs.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| x.exp());
    /// f.call(&Tensor::zeros([2]));
    /// f.call(&Tensor::zeros([3]));
    /// assert_eq!(f.reasons(), ["the input is f64[3], and was f64[2]"]);
    /// ```
    pub fn reasons(&self) -> Vec<String> {
        self.cache().reasons().to_vec()
    }

    /// What has been made of the function, for each signature: the graph, what each pass did, and the kernels.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| (x * 2.0 + x * 2.0).exp());
    /// f.call(&Tensor::zeros([3]));
    /// println!("{}", f.explain());
    /// assert!(f.explain().to_string().contains("exp"));
    /// ```
    pub fn explain(&self) -> Explanation {
        let cache = self.cache();
        Explanation::new(self.location, cache.traces(), cache.reasons(), cache.entries().map(|e| &*e.block))
    }

    /// Where the time of a call goes, by kernel and line of code: the call is repeated a few times, and measured.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| x.matmul(x).tanh().sum());
    /// let profile = f.profile(&Tensor::zeros([64, 64]))?;
    /// println!("{profile}");
    /// assert!(profile.rows.iter().any(|row| row.kernel == "matmul"));
    /// # Ok::<(), pullback::Error>(())
    /// ```
    #[track_caller]
    pub fn profile(&self, x: &X) -> Result<Profile> {
        let location = Location::caller();
        let _entered = entered(location);
        let run = self.entry(x).and_then(|entry| {
            let inputs: Vec<Tensor> =
                x.leaves().into_iter().chain(&entry.captured).map(Tensor::detach).collect();
            entry.block.profile(&inputs)
        });
        run.map_err(|e| e.in_op("profile").at(location))
    }

    /// The graph for inputs like `x` on its own, with what the function captured inside: to be saved, and run elsewhere.
    ///
    /// ```
    /// use pullback::{Executable, prelude::*};
    /// # let path = std::env::temp_dir().join(format!("model-{}.graph", std::process::id()));
    /// let w = Tensor::from([1.0, 2.0, 3.0]);
    /// let f = compile(|x: &Tensor| (x * &w).sum());
    /// f.executable(&Tensor::zeros([3]))?.save(&path)?;
    ///
    /// let loaded = Executable::load(&path)?;
    /// assert_eq!(loaded.run(&[Tensor::from([1.0, 1.0, 1.0])])?[0].item(), 6.0);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), pullback::Error>(())
    /// ```
    #[track_caller]
    pub fn executable(&self, x: &X) -> Result<Executable> {
        let location = Location::caller();
        let _entered = entered(location);
        let made = self.entry(x).and_then(|entry| {
            let captured: Vec<Tensor> = entry.captured.iter().map(Tensor::detach).collect();
            Executable::with(Graph::clone(entry.block.graph()).bound(captured), &self.options)
        });
        made.map_err(|e| e.in_op("executable").at(location))
    }

    /// The graph for inputs like `x`, as it was traced: its inputs are the leaves of `x`, then what the function captured.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| x.exp().sum());
    /// assert_eq!(f.graph(&Tensor::zeros([3]))?.len(), 2);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    #[track_caller]
    pub fn graph(&self, x: &X) -> Result<Graph> {
        let location = Location::caller();
        let _entered = entered(location);
        let entry = self.entry(x).map_err(|e| e.in_op("compile").at(location))?;
        Ok(Graph::clone(entry.block.graph()))
    }

    fn cache(&self) -> MutexGuard<'_, Cache<Y>> {
        self.cache.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What is kept for inputs like `x`; traced now if nothing is.
    fn entry(&self, x: &X) -> Result<Arc<Entry<Y>>> {
        let signature = Signature::of(x)?;
        if let Some(entry) = self.cache().find(&signature) {
            return Ok(entry);
        }
        // Not under the lock: the function may call itself through the cache, with other shapes.
        let entry = Arc::new(self.trace(x)?);
        self.cache().add(signature, x, entry.clone(), self.location);
        Ok(entry)
    }

    fn trace(&self, x: &X) -> Result<Entry<Y>> {
        let mut structure = None;
        let run = |leaves: &[Tensor]| {
            let y = caught(|| (self.f)(&from_leaves(x, leaves.iter().cloned())))?;
            let outputs = y.flatten();
            // Nothing of the trace is to be held by what is kept for the structure alone.
            structure = Some(y.map(&mut |_| Tensor::scalar(0.0)));
            Ok(outputs)
        };
        // What is computed from captured tensors alone is computed now, and kept for calls from other scopes.
        let graph = outside_of_scopes(|| trace_leaves(run, super::avals(x)))?;
        let (graph, done) = traced(graph);
        let (graph, captured) = graph.lift_large();
        let donated = donated(x, &self.donated)?;
        let structure = structure.expect("the function was traced");
        Ok(Entry { block: CompiledGraph::new(graph, done, &donated, &self.options)?, captured, structure })
    }
}

/// The leaves of the donated fields.
fn donated<X: Tree>(x: &X, fields: &[usize]) -> Result<Vec<usize>> {
    let names = x.names();
    // Fields in the order of their leaves: positions in a tuple, names in a struct.
    let mut firsts: Vec<&str> = names.iter().map(|n| n.split('.').next().unwrap_or("")).collect();
    let all = firsts.clone();
    firsts.dedup();
    let mut out = Vec::new();
    for &k in fields {
        // A tuple is addressed by its positions, also where one of them has no leaves.
        let position = k.to_string();
        let field =
            if all.contains(&position.as_str()) { Some(position.as_str()) } else { firsts.get(k).copied() };
        let Some(field) = field else {
            return Err(err!(Structure, "argument {k} is donated, but the input has no tensors there"));
        };
        out.extend(all.iter().enumerate().filter(|(_, f)| **f == field).map(|(i, _)| i));
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}
