//! Gradients of functions of a few numbers, as inner functions of a nested derivative have them: what is not arithmetic is kept short.

use super::idle::{keep_idle_tape, take_idle_tape};
use super::slot::Installed;
use super::{Taped, adjoints_of, check_output, new_generation, sweep, until_sound};
use crate::scalar::Var;

/// The gradient of `f` at `x`, by reverse mode, where `x` and what `f` captures are numbers of any kind: with those that have derivatives
/// themselves, the gradient has them too.
///
/// Inside of `f`, a number from outside is [`Var::fixed`].
///
/// ```
/// use pullback::scalar::{self, Dual, Number, Taped, Var};
/// /// The force of a charge at the origin: the gradient of its potential.
/// fn force<T: Taped>(charge: T, at: [T; 2]) -> [T; 2] {
///     scalar::gradient_at(|[x, y]| Var::fixed(charge) / (x * x + y * y).sqrt(), at)
/// }
/// assert_eq!(force(2.0, [1.0, 0.0]), [-2.0, 0.0]);
/// // And how it changes with the charge.
/// let [x, _] = force(Dual::<f64>::variable(2.0, 0), [1.0, 0.0].map(Dual::fixed));
/// assert_eq!(x.tangents(), [-1.0]);
/// ```
#[inline(always)]
pub fn gradient_at<T: Taped, const N: usize>(f: impl FnOnce([Var<T>; N]) -> Var<T>, x: [T; N]) -> [T; N] {
    let mut tape = take_idle_tape::<T>();
    let (generation, inputs) = (new_generation(), N as u32);
    // SAFETY: the tape is here for as long as the guard lives, and its store is reached through the guard only. The
    // guard is a local of this function, so that guards nest as calls do.
    let installed = unsafe { Installed::with_inputs(&raw mut *tape.store, generation, inputs) };
    let mut variables = [Var::fixed(T::constant(0.0)); N];
    for k in 0..N {
        variables[k] = Var::on_node(x[k], 1 + k as u32, generation);
    }
    let gradient = pulled(&installed, f(variables));
    drop(installed);
    keep_idle_tape(tape);
    gradient
}

/// The derivatives of `y` with respect to the first nodes of the tape, which are its inputs.
#[inline(always)]
fn pulled<T: Taped, const N: usize>(installed: &Installed<T>, y: Var<T>) -> [T; N] {
    let tape = installed.view();
    check_output(&tape, y);
    let (zero, end) = (T::constant(0.0), tape.node());
    let mut adjoints = adjoints_of(tape.store(), end as usize);
    let mut gradient = [zero; N];
    until_sound(
        #[inline(always)]
        |careful| {
            adjoints[y.node() as usize] = y.scale();
            {
                let _paused = tape.pause();
                // SAFETY: all nodes before the end were recorded.
                unsafe { sweep::single(tape.store(), &mut adjoints, 1 + N as u32, end, careful) };
            }
            adjoints[0] = zero;
            let mut sum = T::constant(-0.0);
            for k in 0..N {
                gradient[k] = std::mem::replace(&mut adjoints[1 + k], zero);
                sum = sum.joined(gradient[k]);
            }
            sum.has_nan()
        },
    );
    tape.store().adjoints = adjoints;
    gradient
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::{Dual, Real, gradient, hessian, record};

    fn f<T: Real>(x: [T; 2]) -> T {
        (x[0] * x[1]).sin() + x[0] / x[1]
    }

    #[test]
    fn it_is_the_gradient_at_every_type() {
        let x = [0.75, 1.25];
        let plain = gradient(|x| f([x[0], x[1]]), &x);
        let second = hessian(|x| f([x[0], x[1]]), &x);
        assert_eq!(gradient_at(f, x).as_slice(), plain);
        for k in 0..2 {
            let mut at = x.map(Dual::<f64>::fixed);
            at[k] = Dual::variable(x[k], 0);
            for (j, d) in gradient_at(f, at).into_iter().enumerate() {
                assert_eq!(d.real(), plain[j]);
                assert!((d.tangents()[0] - second[j][k]).abs() < 1e-14);
            }
            let row = gradient(|x| gradient_at(f, [x[0], x[1]])[k], &x);
            assert!(row.iter().zip(&second[k]).all(|(a, b)| (a - b).abs() < 1e-14));
        }
    }

    /// Inputs, multiples of one, constants and operations on many variables have no record of their own, or one of another kind.
    #[test]
    fn outputs_of_every_kind_have_gradients() {
        assert_eq!(gradient_at(|[_, y]| y, [1.0, 2.0]), [0.0, 1.0]);
        assert_eq!(gradient_at(|[x, _]| -x * 3.0, [1.0, 2.0]), [-3.0, 0.0]);
        assert_eq!(gradient_at(|[x, _]| x - x, [1.0, 2.0]), [0.0, 0.0]);
        assert_eq!(gradient_at(|_| Var::constant(1.0), [1.0, 2.0]), [0.0, 0.0]);
        assert_eq!(gradient_at(|x| Var::dot(&x, &x), [1.0, 2.0, 3.0]), [2.0, 4.0, 6.0]);
        assert_eq!(gradient_at(|[]: [Var; 0]| Var::constant(1.0), []), [0.0; 0]);
        // Nothing was left behind for the next one.
        assert_eq!(gradient_at(|[x, y]| x * y, [3.0, 5.0]), [5.0, 3.0]);
    }

    #[test]
    fn it_nests_in_a_recording_of_its_own_type() {
        let outer = record(|t| {
            let x = t.input(2.0);
            let y = x * x;
            let inner = gradient_at(|[z]| z * z, [3.0])[0];
            t.derivative(y * inner, x)
        });
        assert_eq!(outer, 24.0);
    }

    #[test]
    fn a_panic_inside_leaves_no_trace() {
        let thrown = std::panic::catch_unwind(|| {
            gradient_at(|[x]| if x * x > 1.0 { panic!("inside") } else { x }, [2.0])
        });
        assert!(thrown.is_err());
        assert_eq!(gradient_at(|[x]| x * x, [2.0]), [4.0]);
    }
}
