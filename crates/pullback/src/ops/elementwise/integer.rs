//! The elementwise operations that integers have too. They wrap on overflow, as two's complement does.

use super::*;
use crate::kernels::scratch::filled;

pub(super) enum Integer {
    Unary(fn(i64) -> i64),
    Binary(fn(i64, i64) -> i64),
}

impl Integer {
    /// The integer version of a row, if there is one.
    pub fn of(name: &str) -> Option<Integer> {
        use Integer::*;
        Some(match name {
            "neg" => Unary(i64::wrapping_neg),
            "abs" => Unary(i64::wrapping_abs),
            "sign" => Unary(i64::signum),
            "square" => Unary(|x| x.wrapping_mul(x)),
            "add" => Binary(i64::wrapping_add),
            "sub" => Binary(i64::wrapping_sub),
            "mul" => Binary(i64::wrapping_mul),
            "div" => Binary(i64::wrapping_div),
            "rem" => Binary(i64::wrapping_rem),
            "maximum" => Binary(i64::max),
            "minimum" => Binary(i64::min),
            _ => return None,
        })
    }
}

pub(super) fn run(name: &str, x: &[Value], out: &mut Output) -> Result<()> {
    let f = Integer::of(name).expect("`infer` has accepted integers");
    macro_rules! over {
        ($($dtype:ident $T:ty),*) => {
            match x[0].dtype {
                $(DType::$dtype => match f {
                    Integer::Unary(f) => map::map_with(x[0].view::<$T>(), out.fill::<$T>(), |v| f(v as i64) as $T),
                    Integer::Binary(f) => {
                        let (a, b) = (x[0].view::<$T>(), x[1].view::<$T>());
                        if matches!(name, "div" | "rem") {
                            refuse_zero(b)?;
                        }
                        map::zip_with(a, b, out.fill::<$T>(), |a, b| f(a as i64, b as i64) as $T)
                    }
                },)*
                other => unreachable!("an integer kernel was called with {other}"),
            }
        };
    }
    over!(U8 u8, I32 i32, I64 i64);
    Ok(())
}

fn refuse_zero<T: Copy + Default + PartialEq + Send + Sync>(b: View<T>) -> Result<()> {
    let mut zero = filled(false, b.len());
    map::map_with(b, &mut zero, |v| v == T::default());
    match zero.iter().any(|&z| z) {
        true => Err(err!(Value, "integer division by zero")),
        false => Ok(()),
    }
}
