//! Forward mode with a number of tangents that is known when the program runs.

use super::Real;
use super::chain::{Chain, chain_methods, chain_operators, chain_powers};
use super::operators::{compared_by_value, derived_operators};
use super::slope::Slope;
use super::tape::out_of_memory;
use pullback_table::Number;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value with as many tangents as [`directions`] was given. To be `Copy`, it holds the number of a row
/// of tangents in memory that is given back at the end of that call; so a long computation with many tangents is better run on
/// [`Dual`](super::Dual) in groups.
#[derive(Clone, Copy, Debug)]
pub struct WideDual {
    re: f64,
    /// The row of its tangents; `FIXED` if all are zero.
    row: u32,
    generation: u32,
}

const FIXED: u32 = u32::MAX;

/// Rows of tangents.
struct Arena {
    width: usize,
    rows: Vec<f64>,
    generation: u32,
}

thread_local! {
    static ARENA: RefCell<Option<Arena>> = const { RefCell::new(None) };
}

impl WideDual {
    fn fixed(value: f64) -> Self {
        WideDual { re: value, row: FIXED, generation: 0 }
    }

    /// The value.
    pub fn real(self) -> f64 {
        self.re
    }
}

impl Arena {
    fn row(&self, x: WideDual) -> &[f64] {
        assert_eq!(
            x.generation, self.generation,
            "a wide dual number was used outside the call that made it"
        );
        &self.rows[x.row as usize * self.width..][..self.width]
    }

    /// A number whose row was just appended.
    fn appended(&self, value: f64) -> WideDual {
        let row = self.rows.len() / self.width.max(1) - 1;
        let row =
            u32::try_from(row).ok().filter(|&row| row != FIXED).expect("at most 2^32 - 1 rows of tangents");
        WideDual { re: value, row, generation: self.generation }
    }

    /// Appends `p` times a row.
    fn scaled(&mut self, x: WideDual, y: f64, p: f64) -> WideDual {
        let start = self.rows.len();
        let from = x.row as usize * self.width;
        if self.rows.try_reserve(self.width).is_err() {
            out_of_memory(
                (start + self.width) * size_of::<f64>(),
                "the tangents of `directions`; give it fewer of them",
            );
        }
        assert_eq!(
            x.generation, self.generation,
            "a wide dual number was used outside the call that made it"
        );
        self.rows.extend_from_within(from..from + self.width);
        let times = behind(p);
        self.rows[start..].iter_mut().for_each(|t| *t = times(*t));
        self.appended(y)
    }
}

/// What a slope makes of a tangent: the product of the chain rule, which is the plain one for slopes that are neither infinite nor 0.
fn behind(p: f64) -> impl Fn(f64) -> f64 {
    let plain = p.is_finite() && p != 0.0;
    move |t| if plain { p * t } else { p.chain_mul(t) }
}

fn with_arena<R>(f: impl FnOnce(&mut Arena) -> R) -> R {
    ARENA.with_borrow_mut(|arena| {
        f(arena.as_mut().expect("a wide dual number was used outside the call that made it"))
    })
}

impl Chain for WideDual {
    type Primal = f64;

    fn primal(self) -> f64 {
        self.re
    }

    fn unary(self, y: f64, slope: Slope<f64>) -> Self {
        match slope {
            Slope::Zero => Self::fixed(y),
            _ if self.row == FIXED => Self::fixed(y),
            Slope::One => WideDual { re: y, ..self },
            p => with_arena(|arena| arena.scaled(self, y, p.number())),
        }
    }

    fn scaled(self, y: f64, k: f64) -> Self {
        self.unary(y, Slope::Of(k))
    }

    fn binary(self, other: Self, y: f64, [p, q]: [Slope<f64>; 2]) -> Self {
        if let (Slope::Zero, Slope::Zero) = (p, q) {
            return Self::fixed(y);
        }
        if other.row == FIXED {
            return self.unary(y, p);
        }
        if self.row == FIXED {
            return other.unary(y, q);
        }
        with_arena(|arena| {
            let first = arena.scaled(self, y, p.number());
            let q = q.number();
            let (before, new) = arena.rows.split_at_mut(first.row as usize * arena.width);
            assert_eq!(
                other.generation, arena.generation,
                "a wide dual number was used outside the call that made it"
            );
            let b = &before[other.row as usize * arena.width..][..arena.width];
            let times = behind(q);
            new.iter_mut().zip(b).for_each(|(sum, &t)| *sum += times(t));
            first
        })
    }
}

chain_operators! { [] WideDual }
compared_by_value! { [] WideDual, re }
derived_operators! { [] WideDual }

impl Number for WideDual {
    chain_methods!();
}

impl Real for WideDual {
    fn constant(value: f64) -> Self {
        Self::fixed(value)
    }

    fn value(self) -> f64 {
        self.re
    }

    chain_powers!();

    fn chain_mul(self, other: Self) -> Self {
        self.binary(other, self.re.chain_mul(other.re), [Slope::Of(other.re), Slope::Of(self.re)])
    }
}

/// The values of `f` at `x`, and for each of them its derivatives in the given directions, by one run of forward mode.
///
/// ```
/// use pullback::scalar::{directions, Real};
/// fn f<T: Real>(x: &[T]) -> [T; 1] {
///     [x[0] * x[1]]
/// }
/// let (y, d) = directions(f, &[2.0, 3.0], &[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]]);
/// assert_eq!((y, d), (vec![6.0], vec![vec![3.0, 2.0, 5.0]]));
/// ```
///
/// # Panics
/// If a direction is not as long as `x`.
#[track_caller]
pub fn directions<F, O>(f: F, x: &[f64], directions: &[&[f64]]) -> (Vec<f64>, Vec<Vec<f64>>)
where
    F: Fn(&[WideDual]) -> O,
    O: AsRef<[WideDual]>,
{
    /// Puts back the arena of an outer call, also after a panic.
    struct Restore(Option<Arena>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ARENA.set(self.0.take());
        }
    }
    assert!(directions.iter().all(|v| v.len() == x.len()), "directions: each is as long as the point");
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let width = directions.len();
    let mut arena = Arena { width, rows: Vec::new(), generation: NEXT.fetch_add(1, Ordering::Relaxed) };
    let inputs: Vec<WideDual> = (0..x.len())
        .map(|k| {
            if width == 0 {
                return WideDual::fixed(x[k]);
            }
            arena.rows.extend(directions.iter().map(|v| v[k]));
            arena.appended(x[k])
        })
        .collect();
    let _restore = Restore(ARENA.replace(Some(arena)));
    let y = f(&inputs);
    with_arena(|arena| {
        let tangents = |y: &WideDual| if y.row == FIXED { vec![0.0; width] } else { arena.row(*y).to_vec() };
        (y.as_ref().iter().map(|y| y.re).collect(), y.as_ref().iter().map(tangents).collect())
    })
}
