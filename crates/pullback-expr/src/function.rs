//! The elementwise functions of the library's table: names, values on numbers, partial derivatives over any number type.

use pullback_table::{Number, Row, elementwise_table, function, row};

macro_rules! functions {
    ($($(#[doc = $doc:literal])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// An elementwise function: a row of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function {
            $($(#[doc = $doc])* $P,)*
        }

        impl Function {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Function] = &[$(Function::$P),*];

            /// What the table says of it.
            pub fn row(self) -> &'static Row {
                match self { $(Function::$P => &row::$P,)* }
            }

            /// The value at `x`, of as many numbers as there are arguments.
            pub(crate) fn apply<N: Number>(self, x: &[N]) -> N {
                match self {
                    $(Function::$P => {
                        let mut rest = x.iter();
                        $(let $x = *rest.next().expect("one value for each argument");)+
                        function::$m($($x),+)
                    })*
                }
            }

            /// The partial derivatives at `x`, where the value is `y`.
            #[allow(unused_variables, reason = "partials that read nothing look no name up")]
            pub(crate) fn partials<N: Number>(self, x: &[N], y: N) -> Vec<N> where f64: Into<N> {
                match self {
                    $(Function::$P => {
                        let read = |name: &str| match self.row().arguments.iter().position(|n| *n == name) {
                            Some(k) => x[k],
                            None => y,
                        };
                        vec![$({
                            $(let $r = read(stringify!($r));)*
                            ($d).into()
                        }),+]
                    })*
                }
            }
        }
    };
}
elementwise_table!(functions);

impl Function {
    /// The name in expressions and in graphs.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The number of arguments.
    pub fn arity(self) -> usize {
        self.row().arguments.len()
    }

    /// The function of this name; `log` and `pow` have their usual second names.
    pub fn named(name: &str) -> Option<Function> {
        let name = match name {
            "log" => "ln",
            "sgn" => "sign",
            "arcsin" => "asin",
            "arccos" => "acos",
            "arctan" => "atan",
            name => name,
        };
        Function::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// The value at a point.
    pub fn value(self, x: &[f64]) -> f64 {
        self.apply(x)
    }

    /// The partial derivatives at a point.
    pub fn slopes(self, x: &[f64]) -> Vec<f64> {
        self.partials(x, self.apply(x))
    }

    /// The sign between two arguments, where there is one.
    pub fn operator(self) -> Option<&'static str> {
        match self {
            Function::Add => Some("+"),
            Function::Sub => Some("-"),
            Function::Mul => Some("*"),
            Function::Div => Some("/"),
            Function::Rem => Some("%"),
            Function::Pow => Some("^"),
            _ => None,
        }
    }

    /// Why the value at these finite arguments is no finite number, in words.
    ///
    /// ```
    /// use pullback_expr::function::Function;
    /// assert_eq!(Function::Div.trouble(&[1.0, 0.0]).unwrap(), "division by zero");
    /// assert_eq!(Function::Ln.trouble(&[-1.0]).unwrap(), "ln takes positive numbers, not -1");
    /// assert_eq!(Function::Ln.trouble(&[1.0]), None);
    /// ```
    pub fn trouble(self, x: &[f64]) -> Option<String> {
        let y = self.value(x);
        if y.is_finite() || x.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let name = self.name();
        let shown: Vec<String> = x.iter().map(|x| crate::number(*x, crate::Digits::Significant(6))).collect();
        let takes = |what: &str| format!("{name} takes {what}, not {}", shown[0]);
        Some(match self {
            Function::Div if x[1] == 0.0 => "division by zero".to_string(),
            Function::Recip if x[0] == 0.0 => "division by zero".to_string(),
            Function::Rem if x[1] == 0.0 => "division by zero".to_string(),
            Function::Pow if x[0] == 0.0 => {
                format!("zero to the power of {} is a division by zero", shown[1])
            }
            Function::Pow if y.is_nan() => {
                format!("a negative number to the power of {} is not real", shown[1])
            }
            Function::Ln | Function::Log2 | Function::Log10 | Function::Rsqrt => takes("positive numbers"),
            Function::Sqrt => takes("numbers that are not negative"),
            Function::Log1p => takes("numbers above -1"),
            Function::Asin | Function::Acos => takes("numbers from -1 to 1"),
            Function::Atanh => takes("numbers between -1 and 1"),
            Function::Acosh => takes("numbers from 1 on"),
            _ if y.is_nan() => format!("{} is not a number", crate::symbolic::applied(self, &shown)),
            _ => format!("{} is too large for 64 bits", crate::symbolic::applied(self, &shown)),
        })
    }
}
