//! The exponential of a matrix, by scaling and squaring with Padé approximants (Higham, "The scaling and squaring method for the matrix
//! exponential revisited", 2005), in double precision for both types.

use super::*;
use faer::linalg::lu::partial_pivoting::{factor, solve as by_solve};
use faer::{Mat, Par};

/// The coefficients of the numerator of degree 3, 5, 7, 9 and 13, and the norm up to which the approximant is exact to rounding.
const PADE: [(&[f64], f64); 5] = [
    (&[120.0, 60.0, 12.0, 1.0], 1.495585217958292e-2),
    (&[30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0], 2.53939833006323e-1),
    (&[17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0], 9.504178996162932e-1),
    (
        &[
            17643225600.0,
            8821612800.0,
            2075673600.0,
            302702400.0,
            30270240.0,
            2162160.0,
            110880.0,
            3960.0,
            90.0,
            1.0,
        ],
        2.097847961257068,
    ),
    (
        &[
            64764752532480000.0,
            32382376266240000.0,
            7771770303897600.0,
            1187353796428800.0,
            129060195264000.0,
            10559470521600.0,
            670442572800.0,
            33522128640.0,
            1323241920.0,
            40840800.0,
            960960.0,
            16380.0,
            182.0,
            1.0,
        ],
        5.371920351148152,
    ),
];

pub(crate) fn exponential<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let n = a.shape[a.shape.len() - 1];
    each([a], out, 20 * n.pow(3), |[a], out| {
        if n == 0 {
            return true;
        }
        let a = Columns::of(a);
        if !a.is_finite() {
            return not_finite(out);
        }
        let e = of_finite(Mat::from_fn(n, n, |i, j| a.get(i, j).into()));
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, v)| *v = T::from_f64(e[(i, j)]));
        }
        true
    })
}

fn of_finite(mut a: Mat<f64>) -> Mat<f64> {
    let norm = (0..a.ncols()).map(|j| a.col(j).iter().map(|v| v.abs()).sum()).fold(0.0, f64::max);
    let (coefficients, most) = PADE.iter().find(|(_, most)| norm <= *most).unwrap_or(&PADE[4]);
    let halvings = if norm > *most { (norm / most).log2().ceil() as i32 } else { 0 };
    // In two steps: 2⁻¹⁰⁷⁴ is the least power that there is, and its half is not.
    let first = halvings / 2;
    a *= faer::Scale(0.5f64.powi(first));
    a *= faer::Scale(0.5f64.powi(halvings - first));
    let mut e = approximant(&a, coefficients);
    for _ in 0..halvings {
        e = &e * &e;
    }
    e
}

/// `(V - U)⁻¹ (V + U)`, where `U` has the odd powers of the numerator and `V` the even ones.
fn approximant(a: &Mat<f64>, coefficients: &[f64]) -> Mat<f64> {
    let n = a.nrows();
    let identity = Mat::<f64>::identity(n, n);
    let square = a * a;
    let mut powers = vec![identity, square];
    let count = if coefficients.len() == 14 { 4 } else { coefficients.len() / 2 };
    while powers.len() < count {
        let next = &powers[powers.len() - 1] * &powers[1];
        powers.push(next);
    }
    let sum = |terms: &mut dyn Iterator<Item = (usize, f64)>| {
        terms.fold(Mat::zeros(n, n), |sum: Mat<f64>, (k, c)| sum + faer::Scale(c) * &powers[k])
    };
    // Of degree 13 the powers above the sixth are the sixth times those below.
    let polynomial = |odd: usize| {
        let of = |k: usize| coefficients.get(2 * k + odd).copied().unwrap_or(0.0);
        match coefficients.len() {
            14 => {
                let high = sum(&mut (1..4).map(|k| (k, of(k + 3))));
                &powers[3] * high + sum(&mut (0..4).map(|k| (k, of(k))))
            }
            _ => sum(&mut (0..powers.len()).map(|k| (k, of(k)))),
        }
    };
    let (u, v) = (a * polynomial(1), polynomial(0));
    let (mut lu, mut x) = (&v - &u, &v + &u);
    let (mut order, mut inverse) = (vec![0usize; n], vec![0usize; n]);
    let need = factor::lu_in_place_scratch::<usize, f64>(n, n, Par::Seq, Default::default())
        .or(by_solve::solve_in_place_scratch::<usize, f64>(n, n, Par::Seq));
    with_stack(need, |stack| {
        let (_, permutation) =
            factor::lu_in_place(lu.as_mut(), &mut order, &mut inverse, Par::Seq, stack, Default::default());
        by_solve::solve_in_place(lu.as_ref(), lu.as_ref(), permutation, x.as_mut(), Par::Seq, stack);
    });
    x
}
