//! The elementwise operations that integers have too. They wrap on overflow, as two's complement does.

use super::*;
use crate::kernels::scratch::filled;

pub(in crate::ops) fn run(function: Integer, x: &[Value], out: &mut Output) -> Result<()> {
    macro_rules! over {
        ($($dtype:ident $T:ty),*) => {
            match x[0].dtype {
                $(DType::$dtype => match function {
                    Integer::Unary(f) => map::map_with(x[0].view::<$T>(), out.fill::<$T>(), |v| f(v as i64) as $T),
                    Integer::Binary(f) | Integer::Division(f) => {
                        let (a, b) = (x[0].view::<$T>(), x[1].view::<$T>());
                        if matches!(function, Integer::Division(_)) {
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
