//! What a text means: statements over one list of nodes.

use crate::function::Function;
use crate::problem::Span;

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

impl Relation {
    /// The sign.
    pub fn sign(self) -> &'static str {
        match self {
            Relation::Lt => "<",
            Relation::Le => "<=",
            Relation::Gt => ">",
            Relation::Ge => ">=",
            Relation::Eq => "==",
            Relation::Ne => "!=",
        }
    }

    /// The comparison of this sign.
    pub fn of(sign: &str) -> Option<Relation> {
        use Relation::*;
        [Lt, Le, Gt, Ge, Eq, Ne].into_iter().find(|r| r.sign() == sign)
    }

    /// Whether it holds.
    pub fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Relation::Lt => a < b,
            Relation::Le => a <= b,
            Relation::Gt => a > b,
            Relation::Ge => a >= b,
            Relation::Eq => a == b,
            Relation::Ne => a != b,
        }
    }
}

/// `and`, `or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connective {
    /// Both.
    And,
    /// At least one.
    Or,
}

/// What makes one number of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `sum(v)`
    Sum,
    /// `mean(v)`
    Mean,
    /// `prod(v)`
    Prod,
    /// `max(v)`
    Max,
    /// `min(v)`
    Min,
    /// `norm(v)`, Euclidean.
    Norm,
}

/// A function that is no row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// One number of all elements.
    Reduce(Reduction),
    /// `dot(a, b)`
    Dot,
    /// `transpose(A)`, `A'`
    Transpose,
    /// `a @ b`
    Product,
}

/// One position of an index, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// The value of a node, from 1.
    At(usize),
    /// `:`
    All,
}

/// One node. Operands are numbers of earlier nodes: the list is in post-order, so that nothing that walks it recurses, and a subtree
/// is a range of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A literal.
    Number(f64),
    /// An input, a `let`, a loop variable or a constant.
    Name(String),
    /// A row of the table.
    Apply(Function, Vec<usize>),
    /// A comparison.
    Compare(Relation, usize, usize),
    /// `and`, `or`.
    Logic(Connective, usize, usize),
    /// `not`.
    Not(usize),
    /// Anything else that is called.
    Call(Builtin, Vec<usize>),
    /// `[a, b; c, d]`: the number of rows (0 for a vector), and the elements.
    Matrix(usize, Vec<usize>),
    /// `x[i, j]`
    Index(usize, Vec<Index>),
    /// Stands before the branches of a choice: the condition, the last nodes of both branches. The choice itself comes after them.
    Choice {
        /// The condition.
        condition: usize,
        /// The last node of the first branch, which begins after this node.
        then: usize,
        /// The last node of the second branch, which begins after the first.
        otherwise: usize,
    },
    /// `if a then b else c`: the node of its [`Choice`](Node::Choice).
    If(usize),
    /// Stands before the body of a sum: the variable, the bounds, and the last node of the body.
    Loop {
        /// The variable.
        variable: String,
        /// The first value.
        from: usize,
        /// The last value.
        to: usize,
        /// The last node of the body, which begins after this node.
        body: usize,
    },
    /// `sum(i, a, b, body)`: the node of its [`Loop`](Node::Loop).
    Sum(usize),
}

/// A line: a definition or an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The name that was given.
    pub name: Option<String>,
    /// Whether it is a `let`, which is no output.
    pub is_let: bool,
    /// The first node.
    pub start: usize,
    /// The last node.
    pub end: usize,
}

/// A parsed text.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) text: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) spans: Vec<Span>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) inputs: Vec<String>,
    pub(crate) counts: Vec<String>,
}

/// Names that have a value unless the point or a `let` says otherwise.
pub(crate) const CONSTANTS: &[(&str, f64)] = &[
    ("pi", std::f64::consts::PI),
    ("tau", std::f64::consts::TAU),
    ("e", std::f64::consts::E),
    ("inf", f64::INFINITY),
];

impl Program {
    /// The text it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names that a value is needed for, in order of appearance. `pi`, `tau`, `e` and `inf` are among them only if the text uses
    /// them as counts.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Those of the [`inputs`](Program::inputs) that count something: bounds of sums and positions. They are integers, fixed, and
    /// not differentiated.
    pub fn counts(&self) -> &[String] {
        &self.counts
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The lines.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Where a node stands in the text.
    pub fn span(&self, node: usize) -> Span {
        self.spans[node]
    }

    /// The names of the outputs: as given, or `y`, or `y1`, `y2`, .. .
    pub fn outputs(&self) -> Vec<String> {
        let outputs: Vec<&Statement> = self.statements.iter().filter(|s| !s.is_let).collect();
        let taken = |name: &str| self.inputs.iter().any(|i| i == name);
        // A name that no input has.
        let free = |stem: &&str| !taken(stem) && !taken(&format!("{stem}1"));
        let stem = ["y", "f", "out", "result"].into_iter().find(free).unwrap_or("output");
        let name = |(k, s): (usize, &&Statement)| match (&s.name, outputs.len()) {
            (Some(name), _) => name.clone(),
            (None, 1) => stem.to_string(),
            (None, _) => format!("{stem}{}", k + 1),
        };
        outputs.iter().enumerate().map(name).collect()
    }
}
