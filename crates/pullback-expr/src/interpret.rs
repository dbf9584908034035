//! Running a program over any kind of values.

use crate::function::Function;
use crate::problem::Problem;
use crate::program::{Builtin, CONSTANTS, Connective, Index, Node, Program, Relation};

/// How many times the bodies of sums may run in all.
const ROUNDS: i64 = 2_000_000;

/// Values that a program can run over. An error is a message; the interpreter adds the place.
pub trait Domain {
    /// A value: a number, a vector or a matrix.
    type Value: Clone;
    /// A number.
    fn number(&mut self, v: f64) -> Self::Value;
    /// A row of the table, broadcast.
    fn apply(&mut self, f: Function, x: &[Self::Value]) -> Result<Self::Value, String>;
    /// A truth value.
    fn compare(&mut self, r: Relation, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, String>;
    /// A truth value of two.
    fn logic(&mut self, c: Connective, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, String>;
    /// The other truth value.
    fn not(&mut self, a: &Self::Value) -> Result<Self::Value, String>;
    /// The first value where the condition holds, else the second.
    fn choose(&mut self, c: &Self::Value, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, String>;
    /// A function that is no row of the table.
    fn call(&mut self, f: Builtin, x: &[Self::Value]) -> Result<Self::Value, String>;
    /// A vector (`rows` is 0) or a matrix of numbers.
    fn matrix(&mut self, rows: usize, x: Vec<Self::Value>) -> Result<Self::Value, String>;
    /// Elements at positions from 0; `None` for all.
    fn index(&mut self, x: &Self::Value, at: &[Option<usize>]) -> Result<Self::Value, String>;
    /// The lengths of the axes.
    fn shape(&self, x: &Self::Value) -> Vec<usize>;
    /// Told of every `let` and every named output.
    fn named(&mut self, name: &str, x: Self::Value) -> Self::Value;
    /// Told which part of the text the next operations belong to.
    fn visit(&mut self, _program: &Program, _node: usize) {}
}

/// A value while a program runs. What is known without inputs is not left to the domain, so that positions, bounds and choices can
/// depend on it.
#[derive(Clone, Debug)]
pub enum Item<V> {
    /// A number that depends on no input.
    Known(f64),
    /// A truth value that depends on no input.
    Truth(bool),
    /// Anything else.
    Of(V),
}

/// The results: the values of the outputs, in order.
pub type Values<V> = Vec<V>;

/// Runs a program. `lookup` gives the value of an input, and is asked once for each name.
pub fn interpret<D: Domain>(
    program: &Program,
    domain: &mut D,
    lookup: impl Fn(&str) -> Option<Item<D::Value>>,
) -> Result<Values<D::Value>, Problem> {
    let mut run =
        Run { program, domain, names: Vec::new(), values: vec![None; program.nodes.len()], rounds: 0 };
    for name in &program.inputs {
        if let Some(item) = lookup(name) {
            run.names.push((name.clone(), item));
        }
    }
    let mut outputs = Vec::new();
    for s in &program.statements {
        run.range(s.start, s.end)?;
        let mut item = run.item(s.end);
        if let (Some(name), Item::Of(v)) = (&s.name, &item) {
            item = Item::Of(run.domain.named(name, v.clone()));
        }
        match &s.name {
            Some(name) if s.is_let => run.names.push((name.clone(), item)),
            _ => outputs.push(run.value(item)),
        }
    }
    Ok(outputs)
}

struct Run<'a, D: Domain> {
    program: &'a Program,
    domain: &'a mut D,
    /// Inputs, definitions and loop variables; the last of a name counts.
    names: Vec<(String, Item<D::Value>)>,
    values: Vec<Option<Item<D::Value>>>,
    rounds: i64,
}

impl<D: Domain> Run<'_, D> {
    fn at(&self, node: usize) -> &Item<D::Value> {
        self.values[node].as_ref().expect("operands come before their users")
    }

    fn item(&self, node: usize) -> Item<D::Value> {
        self.at(node).clone()
    }

    fn value(&mut self, item: Item<D::Value>) -> D::Value {
        match item {
            Item::Known(v) => self.domain.number(v),
            Item::Truth(b) => self.domain.number(f64::from(u8::from(b))),
            Item::Of(v) => v,
        }
    }

    fn operand(&mut self, node: usize) -> D::Value {
        let item = self.item(node);
        self.value(item)
    }

    fn problem(&self, node: usize, message: impl Into<String>) -> Problem {
        Problem::at(self.program.spans[node], message)
    }

    /// Evaluates the nodes from `start` to `end`.
    fn range(&mut self, start: usize, end: usize) -> Result<(), Problem> {
        let program = self.program;
        let mut k = start;
        while k <= end {
            match &program.nodes[k] {
                Node::Choice { condition, then, otherwise } => {
                    let condition = self.item(*condition);
                    // Only the branch that is taken runs, where that is known: the other may not even make sense.
                    match condition {
                        Item::Truth(true) => self.range(k + 1, *then)?,
                        Item::Truth(false) => self.range(then + 1, *otherwise)?,
                        Item::Known(_) => {
                            return Err(self.problem(k, "the condition of a choice must be a comparison"));
                        }
                        Item::Of(_) => {
                            self.range(k + 1, *then)?;
                            self.range(then + 1, *otherwise)?;
                        }
                    }
                    k = otherwise + 1;
                }
                Node::Loop { body, .. } => {
                    let sum = self.sum(k)?;
                    self.values[body + 1] = Some(sum);
                    k = body + 2;
                }
                _ => {
                    self.domain.visit(program, k);
                    self.values[k] = Some(self.node(k)?);
                    k += 1;
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, k: usize) -> Result<Item<D::Value>, Problem> {
        let program = self.program;
        let result = match &program.nodes[k] {
            Node::Number(v) => return Ok(Item::Known(*v)),
            Node::Name(n) => return self.name(k, n),
            Node::Apply(f, x) => {
                let known: Option<Vec<f64>> = x.iter().map(|x| self.known(*x)).collect();
                if let Some(x) = known {
                    return match f.trouble(&x) {
                        Some(trouble) => Err(self.problem(k, trouble)),
                        None => Ok(Item::Known(f.value(&x))),
                    };
                }
                self.no_truths(x)?;
                // The square has a shorter derivative than the power.
                if *f == Function::Pow && x.get(1).and_then(|p| self.known(*p)) == Some(2.0) {
                    let base = self.operand(x[0]);
                    return self
                        .domain
                        .apply(Function::Square, &[base])
                        .map(Item::Of)
                        .map_err(|e| self.problem(k, e));
                }
                let x: Vec<D::Value> = x.iter().map(|x| self.operand(*x)).collect();
                self.domain.apply(*f, &x)
            }
            Node::Compare(r, a, b) => {
                if let (Some(a), Some(b)) = (self.known(*a), self.known(*b)) {
                    return Ok(Item::Truth(r.holds(a, b)));
                }
                self.no_truths(&[*a, *b])?;
                let (a, b) = (self.operand(*a), self.operand(*b));
                self.domain.compare(*r, &a, &b)
            }
            Node::Logic(c, a, b) => return self.logic(k, *c, *a, *b),
            Node::Not(a) => match self.item(*a) {
                Item::Truth(t) => return Ok(Item::Truth(!t)),
                Item::Known(_) => return Err(self.problem(*a, "`not` takes a comparison")),
                Item::Of(v) => self.domain.not(&v),
            },
            Node::Call(f, x) => {
                self.no_truths(x)?;
                let x: Vec<D::Value> = x.iter().map(|x| self.operand(*x)).collect();
                self.domain.call(*f, &x)
            }
            Node::Matrix(rows, x) => {
                self.no_truths(x)?;
                let values: Vec<D::Value> = x.iter().map(|x| self.operand(*x)).collect();
                if let Some(bad) = (0..values.len()).find(|i| !self.domain.shape(&values[*i]).is_empty()) {
                    return Err(self.problem(x[bad], "the elements of a vector or matrix must be numbers"));
                }
                self.domain.matrix(*rows, values)
            }
            Node::Index(x, places) => return self.index(k, *x, places),
            Node::If(choice) => return self.choice(k, *choice),
            Node::Choice { .. } | Node::Loop { .. } | Node::Sum(_) => {
                unreachable!("handled with their bodies")
            }
        };
        result.map(Item::Of).map_err(|e| self.problem(k, e))
    }

    fn known(&self, node: usize) -> Option<f64> {
        match self.at(node) {
            Item::Known(v) => Some(*v),
            _ => None,
        }
    }

    fn no_truths(&self, nodes: &[usize]) -> Result<(), Problem> {
        match nodes.iter().find(|n| matches!(self.at(**n), Item::Truth(_))) {
            Some(n) => {
                Err(self.problem(*n, "a comparison is not a number").help("write if a < b then 1 else 0"))
            }
            None => Ok(()),
        }
    }

    fn name(&mut self, k: usize, name: &str) -> Result<Item<D::Value>, Problem> {
        if let Some((_, item)) = self.names.iter().rev().find(|n| n.0 == name) {
            return Ok(item.clone());
        }
        if let Some((_, v)) = CONSTANTS.iter().find(|c| c.0 == name) {
            return Ok(Item::Known(*v));
        }
        Err(self.problem(k, format!("`{name}` has no value")).help(format!("give it one: --at {name}=1")))
    }

    fn logic(&mut self, k: usize, c: Connective, a: usize, b: usize) -> Result<Item<D::Value>, Problem> {
        let (x, y) = (self.item(a), self.item(b));
        for (item, node) in [(&x, a), (&y, b)] {
            if matches!(item, Item::Known(_)) {
                return Err(self.problem(node, "`and` and `or` take comparisons"));
            }
        }
        let absorbing = c == Connective::Or;
        match (x, y) {
            (Item::Truth(t), other) | (other, Item::Truth(t)) => {
                Ok(if t == absorbing { Item::Truth(t) } else { other })
            }
            (Item::Of(x), Item::Of(y)) => {
                self.domain.logic(c, &x, &y).map(Item::Of).map_err(|e| self.problem(k, e))
            }
            _ => unreachable!("numbers were refused"),
        }
    }

    fn choice(&mut self, k: usize, choice: usize) -> Result<Item<D::Value>, Problem> {
        if let Node::Choice { condition, then, otherwise } = self.program.nodes[choice] {
            return match self.item(condition) {
                Item::Truth(true) => Ok(self.item(then)),
                Item::Of(c) => {
                    self.no_truths(&[then, otherwise])?;
                    let (a, b) = (self.operand(then), self.operand(otherwise));
                    self.domain.choose(&c, &a, &b).map(Item::Of).map_err(|e| self.problem(k, e))
                }
                _ => Ok(self.item(otherwise)),
            };
        }
        unreachable!("a choice has its branches before it")
    }

    fn count(&self, node: usize, what: &str) -> Result<i64, Problem> {
        match self.item(node) {
            Item::Known(v) if v.fract() == 0.0 && v.abs() < 1e15 => Ok(v as i64),
            Item::Known(v) => Err(self.problem(node, format!("{what} must be a whole number, this is {v}"))),
            _ => Err(self.problem(node, format!("{what} must not depend on the inputs"))),
        }
    }

    fn index(&mut self, k: usize, x: usize, places: &[Index]) -> Result<Item<D::Value>, Problem> {
        let v = self.operand(x);
        let shape = self.domain.shape(&v);
        if places.len() > shape.len() || places.is_empty() {
            let what = match shape.len() {
                0 => "a number".to_string(),
                1 => format!("a vector of {}", shape[0]),
                _ => format!("a matrix of {} x {}", shape[0], shape[1]),
            };
            return Err(self.problem(k, format!("{} positions in {what}", places.len())));
        }
        let mut at = Vec::with_capacity(places.len());
        for (axis, place) in places.iter().enumerate() {
            at.push(match place {
                Index::All => None,
                Index::At(node) => match self.count(*node, "a position")? {
                    i if i >= 1 && i as usize <= shape[axis] => Some(i as usize - 1),
                    i => {
                        let message = format!("there is no position {i} among {}", shape[axis]);
                        return Err(self.problem(*node, message).help("positions count from 1"));
                    }
                },
            });
        }
        self.domain.index(&v, &at).map(Item::Of).map_err(|e| self.problem(k, e))
    }

    /// Runs the body of a sum for each value of its variable.
    fn sum(&mut self, k: usize) -> Result<Item<D::Value>, Problem> {
        let program = self.program;
        let (variable, from, to, body) = match &program.nodes[k] {
            Node::Loop { variable, from, to, body } => (variable, *from, *to, *body),
            _ => unreachable!("only loops are summed"),
        };
        let (low, high) = (self.count(from, "the bound of a sum")?, self.count(to, "the bound of a sum")?);
        let depth = self.names.len();
        let mut total: Item<D::Value> = Item::Known(0.0);
        self.rounds += (high - low + 1).max(0);
        if self.rounds > ROUNDS {
            return Err(self.problem(k, format!("the sums have more than {ROUNDS} terms")));
        }
        for i in low..=high {
            self.names.push((variable.clone(), Item::Known(i as f64)));
            self.range(k + 1, body)?;
            self.names.truncate(depth);
            self.no_truths(&[body])?;
            let term = self.item(body);
            self.domain.visit(program, body + 1);
            total = match (total, term) {
                (Item::Known(a), Item::Known(b)) => Item::Known(a + b),
                (Item::Known(a), term) if a == 0.0 && i == low => term,
                (a, b) => {
                    let (a, b) = (self.value(a), self.value(b));
                    self.domain.apply(Function::Add, &[a, b]).map(Item::Of).map_err(|e| self.problem(k, e))?
                }
            };
        }
        Ok(total)
    }
}
