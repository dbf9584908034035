//! Formulas: the partial derivatives of the table, evaluated on names instead of numbers.
//!
//! A formula is a number type like any other, so the text of a local derivative cannot differ from the rule that runs.

use crate::function::Function;
use crate::number_format::{Digits, number};
use pullback_table::{Number, elementwise_table};
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// How formulas are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As in the expression language.
    Plain,
    /// For a LaTeX document.
    Latex,
}

/// A formula, as the number of a term in a list.
#[derive(Clone, Copy, Debug)]
struct Formula(usize);

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Number(f64),
    Name(String),
    Neg(usize),
    Binary(char, usize, usize),
    Call(&'static str, Vec<usize>),
}

thread_local! {
    static TERMS: RefCell<Vec<Term>> = const { RefCell::new(Vec::new()) };
}

fn term(of: Formula) -> Term {
    TERMS.with_borrow(|t| t[of.0].clone())
}

fn make(term: Term) -> Formula {
    TERMS.with_borrow_mut(|t| {
        t.push(term);
        Formula(t.len() - 1)
    })
}

fn constant(of: Formula) -> Option<f64> {
    match term(of) {
        Term::Number(v) => Some(v),
        _ => None,
    }
}

fn same(a: Formula, b: Formula) -> bool {
    a.0 == b.0 || matches!((term(a), term(b)), (Term::Name(a), Term::Name(b)) if a == b)
}

fn call(name: &'static str, args: &[Formula]) -> Formula {
    make(Term::Call(name, args.iter().map(|f| f.0).collect()))
}

impl From<f64> for Formula {
    fn from(v: f64) -> Formula {
        make(Term::Number(v))
    }
}

impl Neg for Formula {
    type Output = Formula;
    fn neg(self) -> Formula {
        match term(self) {
            Term::Number(v) => (-v).into(),
            Term::Neg(x) => Formula(x),
            _ => make(Term::Neg(self.0)),
        }
    }
}

impl Add for Formula {
    type Output = Formula;
    fn add(self, b: Formula) -> Formula {
        match (term(self), term(b)) {
            (Term::Number(x), Term::Number(y)) => (x + y).into(),
            (_, Term::Number(0.0)) => self,
            (Term::Neg(x), _) => b - Formula(x),
            (_, Term::Neg(y)) => self - Formula(y),
            _ => make(Term::Binary('+', self.0, b.0)),
        }
    }
}

impl Sub for Formula {
    type Output = Formula;
    fn sub(self, b: Formula) -> Formula {
        match (constant(self), constant(b)) {
            (Some(x), Some(y)) => (x - y).into(),
            (_, Some(0.0)) => self,
            _ => make(Term::Binary('-', self.0, b.0)),
        }
    }
}

impl Mul for Formula {
    type Output = Formula;
    fn mul(self, b: Formula) -> Formula {
        if same(self, b) {
            return make(Term::Binary('^', self.0, Formula::from(2.0).0));
        }
        match (term(self), term(b)) {
            (Term::Number(x), Term::Number(y)) => (x * y).into(),
            (Term::Number(1.0), _) => b,
            (_, Term::Number(1.0)) => self,
            (Term::Number(-1.0), _) => -b,
            (_, Term::Number(-1.0)) => -self,
            (Term::Neg(x), _) => -(Formula(x) * b),
            (_, Term::Neg(y)) => -(self * Formula(y)),
            // A factor of a quotient belongs above the line, a number to the front.
            (Term::Binary('/', x, y), _) => Formula(x) * b / Formula(y),
            (_, Term::Binary('/', x, y)) => self * Formula(x) / Formula(y),
            (_, Term::Number(_)) => make(Term::Binary('*', b.0, self.0)),
            _ => make(Term::Binary('*', self.0, b.0)),
        }
    }
}

impl Div for Formula {
    type Output = Formula;
    fn div(self, b: Formula) -> Formula {
        match (term(self), term(b)) {
            (Term::Number(x), Term::Number(y)) if y != 0.0 => (x / y).into(),
            (_, Term::Number(1.0)) => self,
            (Term::Neg(x), _) => -(Formula(x) / b),
            (Term::Binary('/', x, y), _) => Formula(x) / (Formula(y) * b),
            _ => make(Term::Binary('/', self.0, b.0)),
        }
    }
}

macro_rules! with_numbers {
    ($($Op:ident $op:ident),+) => {$(
        impl $Op<f64> for Formula {
            type Output = Formula;
            fn $op(self, b: f64) -> Formula {
                $Op::$op(self, Formula::from(b))
            }
        }
    )+};
}
with_numbers!(Add add, Sub sub, Mul mul, Div div);

/// The rows that are written in another way than as a call.
macro_rules! method {
    ($m:ident $x:tt = ($($operator:tt)*)) => {};
    (recip $($rest:tt)*) => {
        fn recip(self) -> Formula {
            Formula::from(1.0) / self
        }
    };
    (rsqrt $($rest:tt)*) => {
        fn rsqrt(self) -> Formula {
            self.sqrt().recip()
        }
    };
    (square $($rest:tt)*) => {
        fn square(self) -> Formula {
            self * self
        }
    };
    // Zero times anything is zero, which a formula does not have to say; nor that something counts only where it exists.
    (gate $($rest:tt)*) => {
        fn gate(self, b: Formula) -> Formula {
            match term(self) {
                Term::Call("step", _) => b,
                _ => self * b,
            }
        }
    };
    (rem $($rest:tt)*) => {
        fn rem(self, b: Formula) -> Formula {
            make(Term::Binary('%', self.0, b.0))
        }
    };
    (pow $($rest:tt)*) => {
        fn pow(self, b: Formula) -> Formula {
            match constant(b) {
                Some(1.0) => self,
                _ => make(Term::Binary('^', self.0, b.0)),
            }
        }
    };
    (xlogy $($rest:tt)*) => {
        fn xlogy(self, b: Formula) -> Formula {
            self * b.ln()
        }
    };
    ($m:ident($x:ident $(, $b:ident)?) = $value:tt) => {
        fn $m(self $(, $b: Formula)?) -> Formula {
            call(stringify!($m), &[self $(, $b)?])
        }
    };
}

macro_rules! formulas {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl Number for Formula {
            $(method! { $m $x = $value })*
        }
    };
}
elementwise_table!(formulas);

/// Irrational numbers that the table uses, by their names.
const NAMED: &[(f64, &str, &str)] = &[
    (std::f64::consts::LN_2, "ln(2)", "\\ln 2"),
    (std::f64::consts::LOG2_E, "1/ln(2)", "\\frac{1}{\\ln 2}"),
    (std::f64::consts::LOG10_E, "1/ln(10)", "\\frac{1}{\\ln 10}"),
    (std::f64::consts::FRAC_2_SQRT_PI, "2/sqrt(pi)", "\\frac{2}{\\sqrt{\\pi}}"),
    (std::f64::consts::FRAC_1_SQRT_2, "1/sqrt(2)", "\\frac{1}{\\sqrt{2}}"),
    (
        0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2,
        "1/sqrt(2*pi)",
        "\\frac{1}{\\sqrt{2\\pi}}",
    ),
    (1.0 / 3.0, "1/3", "\\frac{1}{3}"),
];

const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;
const POWER: u8 = 4;
const ATOM: u8 = 5;

/// The text of a formula, and how tightly it is bound. Formulas of the table are shallow, so this may recurse.
fn write(of: Formula, style: Style) -> (String, u8) {
    let latex = style == Style::Latex;
    match term(of) {
        Term::Number(v) => {
            let named = NAMED.iter().find(|n| n.0 == v.abs());
            let sign = if v < 0.0 { "-" } else { "" };
            match named {
                Some((_, _, text)) if latex => (format!("{sign}{text}"), if v < 0.0 { SIGN } else { ATOM }),
                Some((_, text, _)) => (format!("{sign}{text}"), PRODUCT),
                None if v < 0.0 => (number(v, Digits::Significant(10)), SIGN),
                None => (number(v, Digits::Significant(10)), ATOM),
            }
        }
        Term::Name(n) => {
            // A literal operand may be negative.
            let tight = if n.starts_with('-') { SIGN } else { ATOM };
            (if latex { latex_name(&n) } else { n }, tight)
        }
        Term::Neg(x) => (format!("-{}", within(Formula(x), PRODUCT, style)), SIGN),
        Term::Binary('/', a, b) if latex => {
            (format!("\\frac{{{}}}{{{}}}", write(Formula(a), style).0, write(Formula(b), style).0), ATOM)
        }
        Term::Binary('^', a, b) if latex => {
            (format!("{}^{{{}}}", within(Formula(a), ATOM, style), write(Formula(b), style).0), POWER)
        }
        Term::Binary(sign, a, b) => {
            let (level, left, right) = match sign {
                '+' => (SUM, SUM, SUM),
                '-' => (SUM, SUM, PRODUCT),
                '*' => (PRODUCT, PRODUCT, PRODUCT),
                '^' => (POWER, ATOM, POWER),
                _ => (PRODUCT, PRODUCT, SIGN),
            };
            let text = match sign {
                '+' | '-' => format!(" {sign} "),
                '*' if latex => " ".to_string(),
                '%' if latex => " \\bmod ".to_string(),
                _ => sign.to_string(),
            };
            // A sign at the front of a factor would read as a difference.
            let b = match (sign, within(Formula(b), right, style)) {
                (_, b) if b.starts_with('-') => format!("({b})"),
                (_, b) => b,
            };
            (format!("{}{text}{b}", within(Formula(a), left, style)), level)
        }
        Term::Call(name, args) => {
            let args: Vec<String> = args.iter().map(|a| write(Formula(*a), style).0).collect();
            (if latex { latex_call(name, &args) } else { format!("{name}({})", args.join(", ")) }, ATOM)
        }
    }
}

fn within(of: Formula, least: u8, style: Style) -> String {
    let (text, level) = write(of, style);
    match (level < least, style) {
        (false, _) => text,
        (true, Style::Plain) => format!("({text})"),
        (true, Style::Latex) => format!("\\left({text}\\right)"),
    }
}

fn latex_call(name: &str, args: &[String]) -> String {
    let all = args.join(", ");
    match name {
        "sqrt" => format!("\\sqrt{{{all}}}"),
        "cbrt" => format!("\\sqrt[3]{{{all}}}"),
        "abs" => format!("\\left|{all}\\right|"),
        "exp" => format!("e^{{{all}}}"),
        "floor" => format!("\\lfloor {all} \\rfloor"),
        "ceil" => format!("\\lceil {all} \\rceil"),
        "sigmoid" => format!("\\sigma\\left({all}\\right)"),
        "maximum" => format!("\\max\\left({all}\\right)"),
        "minimum" => format!("\\min\\left({all}\\right)"),
        "asin" | "acos" | "atan" => format!("\\arc{}\\left({all}\\right)", &name[1..]),
        "sin" | "cos" | "tan" | "sinh" | "cosh" | "tanh" | "ln" => format!("\\{name}\\left({all}\\right)"),
        _ => format!("\\operatorname{{{}}}\\left({all}\\right)", name.replace('_', "\\_")),
    }
}

/// A name for LaTeX: digits at its end and positions become an index.
///
/// ```
/// assert_eq!(pullback_expr::symbolic::latex_name("x12"), "x_{12}");
/// assert_eq!(pullback_expr::symbolic::latex_name("w[1,2]"), "w_{1,2}");
/// ```
pub fn latex_name(name: &str) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return name.to_string();
    }
    let (stem, place) = match name.split_once('[') {
        Some((stem, rest)) => (stem, rest.trim_end_matches(']').to_string()),
        None => (name, String::new()),
    };
    let bare = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let parts: Vec<&str> = [&stem[bare.len()..], &place].into_iter().filter(|p| !p.is_empty()).collect();
    let letter = if bare.chars().count() > 1 {
        format!("\\mathit{{{}}}", bare.replace('_', "\\_"))
    } else {
        bare.to_string()
    };
    if parts.is_empty() { letter } else { format!("{letter}_{{{}}}", parts.join(",")) }
}

fn fresh() {
    TERMS.with_borrow_mut(Vec::clear);
}

/// Names and numbers as they stand in a trace.
fn leaf(text: &str) -> Formula {
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() => v.into(),
        _ => make(Term::Name(text.to_string())),
    }
}

/// A letter for the steps of a trace, `v` if no input is called so with a number.
///
/// ```
/// assert_eq!(pullback_expr::symbolic::stem(&["x1".to_string(), "v2".to_string()]), "s");
/// ```
pub fn stem(inputs: &[String]) -> &'static str {
    let taken = |stem: &str, name: &str| {
        let rest = name.strip_prefix(stem);
        rest.is_some_and(|r| !r.is_empty() && r.chars().all(|c| c.is_ascii_digit()))
    };
    ["v", "s", "t", "q"].into_iter().find(|s| !inputs.iter().any(|n| taken(s, n))).unwrap_or("step_")
}

/// A function of named arguments, such as `x1*x2`.
pub fn applied(f: Function, args: &[String]) -> String {
    applied_in(f, args, Style::Plain)
}

/// [`applied`], in a style.
pub fn applied_in(f: Function, args: &[String], style: Style) -> String {
    fresh();
    // As names: `2*3` is to stay what it is.
    let x: Vec<Formula> = args.iter().map(|a| make(Term::Name(a.clone()))).collect();
    let formula = match (f, &x[..]) {
        (Function::Neg, [x]) => make(Term::Neg(x.0)),
        (Function::Square, [x]) => make(Term::Binary('^', x.0, Formula::from(2.0).0)),
        (f, [a, b]) if f.operator().is_some() => {
            make(Term::Binary(f.operator().and_then(|s| s.chars().next()).unwrap_or(' '), a.0, b.0))
        }
        (f, x) => call(f.name(), x),
    };
    write(formula, style).0
}

/// The local derivatives of a function of named arguments whose value has the name `y`.
///
/// ```
/// use pullback_expr::{function::Function, symbolic::{partials, Style}};
/// let names = |s: &[&str]| s.iter().map(|s| s.to_string()).collect::<Vec<_>>();
/// assert_eq!(partials(Function::Sin, &names(&["x1"]), "v1", Style::Plain), ["cos(x1)"]);
/// assert_eq!(partials(Function::Div, &names(&["a", "b"]), "v1", Style::Plain), ["1/b", "-v1/b"]);
/// assert_eq!(partials(Function::Pow, &names(&["x", "3"]), "v1", Style::Plain)[0], "3*x^2");
/// ```
pub fn partials(f: Function, args: &[String], y: &str, style: Style) -> Vec<String> {
    fresh();
    let x: Vec<Formula> = args.iter().map(|a| leaf(a)).collect();
    let y = make(Term::Name(y.to_string()));
    f.partials(&x, y).into_iter().map(|d| write(d, style).0).collect()
}
