//! Tokens to a program, by precedence climbing. docs/expressions.md has the grammar.

use crate::function::Function;
use crate::lexer::{Kind, Token, tokens};
use crate::names::names;
use crate::problem::{Problem, Span};
use crate::program::{Builtin, Connective, Index, Node, Program, Reduction, Relation, Statement};
use crate::vocabulary::{KEYWORDS, check_name, is_function, unknown_function};

/// How deep brackets, signs and choices may nest: the parser recurses, and a formula that a person wrote is far below.
const DEPTH: usize = 200;

/// Parses an expression, or lines of `let` and expressions.
///
/// ```
/// let program = pullback_expr::parse("let r = sqrt(x^2 + y^2)\nr, atan2(y, x)").unwrap();
/// assert_eq!(program.outputs(), ["f1", "f2"]);
/// ```
pub fn parse(text: &str) -> Result<Program, Problem> {
    let program = Parser::new(text)?.program()?;
    if program.statements.iter().all(|s| s.is_let) {
        let end = Span::new(text.len(), text.len());
        return Err(
            Problem::at(end, "expected an expression, which is the result").help("such as x1*x2 + sin(x1)")
        );
    }
    names(program)
}

/// Parses `x1 = 2, x2 = 3`: names with expressions, which [`scalar::point`](crate::scalar::point) evaluates.
pub fn parse_point(text: &str) -> Result<Program, Problem> {
    let program = names(Parser::new(text)?.program()?)?;
    if let Some(s) = program.statements.iter().find(|s| s.name.is_none() || s.is_let) {
        return Err(
            Problem::at(program.spans[s.end], "expected a name with its value").help("such as x1=2,x2=3")
        );
    }
    for (k, s) in program.statements.iter().enumerate() {
        let name = s.name.as_deref().unwrap_or_default();
        if program.statements[..k].iter().any(|t| t.name.as_deref() == Some(name)) {
            return Err(Problem::at(program.spans[s.end], format!("`{name}` has a value already")));
        }
    }
    Ok(program)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
    nodes: Vec<Node>,
    spans: Vec<Span>,
}

type Parsed = Result<usize, Problem>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, Problem> {
        Ok(Parser { text, tokens: tokens(text)?, at: 0, depth: 0, nodes: Vec::new(), spans: Vec::new() })
    }

    fn peek(&self) -> Token<'a> {
        self.tokens[self.at]
    }

    fn after(&self) -> Kind<'a> {
        self.tokens.get(self.at + 1).map_or(Kind::End, |t| t.kind)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn takes(&mut self, kind: Kind) -> bool {
        let found = self.peek().kind == kind;
        if found {
            self.at += 1;
        }
        found
    }

    fn push(&mut self, node: Node, span: Span) -> usize {
        self.nodes.push(node);
        self.spans.push(span);
        self.nodes.len() - 1
    }

    fn found(&self, token: Token) -> String {
        match token.kind {
            Kind::End => "the end".to_string(),
            Kind::Line => "the end of the line".to_string(),
            _ => format!("`{}`", &self.text[token.span.start..token.span.end]),
        }
    }

    fn expect(&mut self, sign: &'static str, opened: Option<Span>) -> Result<Span, Problem> {
        let token = self.peek();
        if self.takes(Kind::Sign(sign)) {
            return Ok(token.span);
        }
        let problem = Problem::at(token.span, format!("expected `{sign}` before {}", self.found(token)));
        Err(match opened {
            Some(span) => {
                let line = self.text[..span.start].rfind('\n').map_or(0, |k| k + 1);
                let column = self.text[line..span.start].chars().count() + 1;
                problem.help(format!("the bracket opened at column {column}"))
            }
            None => problem,
        })
    }

    fn keyword(&mut self, word: &'static str) -> Result<(), Problem> {
        self.skip_lines();
        let token = self.peek();
        if self.takes(Kind::Name(word)) {
            return Ok(());
        }
        let form = "a choice is written: if a < b then c else d";
        Err(Problem::at(token.span, format!("expected `{word}` before {}", self.found(token))).help(form))
    }

    fn skip_lines(&mut self) {
        while self.takes(Kind::Line) {}
    }

    fn program(mut self) -> Result<Program, Problem> {
        let mut statements = Vec::new();
        loop {
            while self.takes(Kind::Line) || self.takes(Kind::Sign(";")) {}
            if self.peek().kind == Kind::End {
                break;
            }
            statements.push(self.statement()?);
            let token = self.peek();
            match token.kind {
                Kind::End | Kind::Line | Kind::Sign(";") => {}
                Kind::Sign(",") => {
                    self.at += 1;
                    self.skip_lines();
                    if self.peek().kind == Kind::End {
                        return Err(Problem::at(token.span, "expected another expression after `,`"));
                    }
                }
                _ => return Err(self.misplaced(token)),
            }
        }
        let Parser { text, nodes, spans, .. } = self;
        Ok(Program {
            text: text.to_string(),
            nodes,
            spans,
            statements,
            inputs: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// Something that does not continue an expression.
    fn misplaced(&self, token: Token) -> Problem {
        let found = self.found(token);
        let previous = self.at.checked_sub(1).map(|k| self.tokens[k].kind);
        let problem = Problem::at(token.span, format!("expected an operator or the end, found {found}"));
        match (previous, token.kind) {
            (_, Kind::Sign(")" | "]")) => Problem::at(token.span, format!("{found} closes nothing")),
            (_, Kind::Sign("=")) => {
                problem.help("a name is defined by `let name = ..`; two numbers are compared by `==`")
            }
            (Some(Kind::Name(f)), _) if is_function(f) => {
                problem.help(format!("`{f}` is a function: write {f}(..)"))
            }
            (Some(Kind::Number(_)), Kind::Name(_) | Kind::Sign("(")) => {
                problem.help("a product is written with `*`")
            }
            _ => problem,
        }
    }

    fn statement(&mut self) -> Result<Statement, Problem> {
        let is_let = self.takes(Kind::Name("let"));
        let mut name = None;
        let token = self.peek();
        match (token.kind, self.after()) {
            (Kind::Name(n), Kind::Sign("=")) => {
                check_name(n, token.span)?;
                name = Some(n.to_string());
                self.at += 2;
            }
            _ if is_let => {
                return Err(Problem::at(token.span, "expected `name = value` after `let`")
                    .help("such as let r = x^2 + y^2"));
            }
            _ => {}
        }
        let start = self.nodes.len();
        let end = self.expression(0)?;
        Ok(Statement { name, is_let, start, end })
    }

    fn deeper(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > DEPTH {
            let message = format!("the expression is nested more than {DEPTH} levels deep");
            return Err(Problem::at(self.peek().span, message).help("name a part of it with `let`"));
        }
        Ok(())
    }

    /// An expression of operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Parsed {
        self.deeper()?;
        let mut left = self.operand()?;
        loop {
            let token = self.peek();
            let (level, operator) = match binary(token.kind) {
                Some(found) if found.0 >= least => found,
                _ => break,
            };
            self.at += 1;
            // A power is taken from the right, everything else from the left.
            let right = self.expression(if level == POWER { level } else { level + 1 })?;
            let span = self.spans[left].to(self.spans[right]);
            let node = match operator {
                Operator::Apply(f) => Node::Apply(f, vec![left, right]),
                Operator::Compare(r) => Node::Compare(r, left, right),
                Operator::Logic(c) => Node::Logic(c, left, right),
                Operator::Product => Node::Call(Builtin::Product, vec![left, right]),
            };
            left = self.push(node, span);
            if level == COMPARISON && binary(self.peek().kind).map(|b| b.0) == Some(COMPARISON) {
                let help = "write a < b and b < c";
                return Err(Problem::at(self.peek().span, "comparisons do not chain").help(help));
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Signs before a value, or a choice.
    fn operand(&mut self) -> Parsed {
        self.skip_lines();
        let token = self.peek();
        match token.kind {
            Kind::Sign("-") => {
                self.at += 1;
                let x = self.expression(UNARY)?;
                let span = token.span.to(self.spans[x]);
                Ok(match self.nodes[x] {
                    Node::Number(v) => {
                        self.spans[x] = span;
                        self.nodes[x] = Node::Number(-v);
                        x
                    }
                    _ => self.push(Node::Apply(Function::Neg, vec![x]), span),
                })
            }
            Kind::Sign("+") => {
                self.at += 1;
                self.expression(UNARY)
            }
            Kind::Name("not") => {
                self.at += 1;
                let x = self.expression(COMPARISON)?;
                let span = token.span.to(self.spans[x]);
                Ok(self.push(Node::Not(x), span))
            }
            Kind::Name("if") => self.choice(),
            _ => self.postfix(),
        }
    }

    fn choice(&mut self) -> Parsed {
        let start = self.take().span;
        let condition = self.expression(0)?;
        self.keyword("then")?;
        let place = self.push(Node::Number(0.0), start);
        let then = self.expression(0)?;
        self.keyword("else")?;
        let otherwise = self.expression(0)?;
        self.nodes[place] = Node::Choice { condition, then, otherwise };
        let span = start.to(self.spans[otherwise]);
        Ok(self.push(Node::If(place), span))
    }

    fn postfix(&mut self) -> Parsed {
        let mut x = self.primary()?;
        loop {
            let token = self.peek();
            match token.kind {
                Kind::Sign("'") => {
                    self.at += 1;
                    let span = self.spans[x].to(token.span);
                    x = self.push(Node::Call(Builtin::Transpose, vec![x]), span);
                }
                Kind::Sign("[") => {
                    self.at += 1;
                    let mut places = Vec::new();
                    loop {
                        places.push(if self.takes(Kind::Sign(":")) {
                            Index::All
                        } else {
                            Index::At(self.expression(0)?)
                        });
                        if !self.takes(Kind::Sign(",")) {
                            break;
                        }
                    }
                    let close = self.expect("]", Some(token.span))?;
                    let span = self.spans[x].to(close);
                    x = self.push(Node::Index(x, places), span);
                }
                _ => return Ok(x),
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let token = self.peek();
        match token.kind {
            Kind::Number(v) => {
                self.at += 1;
                Ok(self.push(Node::Number(v), token.span))
            }
            Kind::Name(name) if !KEYWORDS.contains(&name) => {
                self.at += 1;
                if self.peek().kind == Kind::Sign("(") {
                    return self.call(name, token.span);
                }
                Ok(self.push(Node::Name(name.to_string()), token.span))
            }
            Kind::Sign("(") => {
                self.at += 1;
                let x = self.expression(0)?;
                let close = self.expect(")", Some(token.span))?;
                self.spans[x] = token.span.to(close);
                Ok(x)
            }
            Kind::Sign("[") => self.matrix(),
            _ => {
                let message =
                    format!("expected a number, a name, a function, `(` or `[`, found {}", self.found(token));
                Err(Problem::at(token.span, message))
            }
        }
    }

    fn matrix(&mut self) -> Parsed {
        let open = self.take().span;
        let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
        let close = loop {
            let row = rows.len() - 1;
            let x = self.expression(0)?;
            rows[row].push(x);
            if self.takes(Kind::Sign(";")) {
                rows.push(Vec::new());
            } else if !self.takes(Kind::Sign(",")) {
                break self.expect("]", Some(open))?;
            }
        };
        let span = open.to(close);
        if let Some(row) = rows.iter().find(|r| r.len() != rows[0].len()) {
            let message = format!(
                "the rows of a matrix must be equally long, these have {} and {}",
                rows[0].len(),
                row.len()
            );
            return Err(Problem::at(span, message));
        }
        let count = if rows.len() == 1 { 0 } else { rows.len() };
        Ok(self.push(Node::Matrix(count, rows.concat()), span))
    }

    fn call(&mut self, name: &'a str, at: Span) -> Parsed {
        let open = self.take().span;
        if let (true, Kind::Name(variable), Kind::Sign(",")) = (name == "sum", self.peek().kind, self.after())
        {
            return self.sum(variable, at, open);
        }
        let mut args = Vec::new();
        if self.peek().kind != Kind::Sign(")") {
            loop {
                args.push(self.expression(0)?);
                if !self.takes(Kind::Sign(",")) {
                    break;
                }
            }
        }
        let span = at.to(self.expect(")", Some(open))?);
        let wants = |n: usize, what: &str| {
            if args.len() == n {
                return Ok(());
            }
            let plural = if n == 1 { "" } else { "s" };
            Err(Problem::at(span, format!("`{name}` takes {n} argument{plural}{what}, not {}", args.len())))
        };
        let reduction = match name {
            "sum" => Some(Reduction::Sum),
            "mean" => Some(Reduction::Mean),
            "prod" => Some(Reduction::Prod),
            "norm" => Some(Reduction::Norm),
            "max" => Some(Reduction::Max),
            "min" => Some(Reduction::Min),
            _ => None,
        };
        let node = match (name, reduction) {
            ("max" | "min", _) if args.len() > 1 => {
                let f = if name == "max" { Function::Maximum } else { Function::Minimum };
                let last = args.pop().unwrap_or_default();
                let first = args.remove(0);
                let folded = args.into_iter().fold(first, |a, b| self.push(Node::Apply(f, vec![a, b]), span));
                Node::Apply(f, vec![folded, last])
            }
            (_, Some(reduction)) => {
                wants(1, if name == "sum" { ", or 4: sum(i, 1, n, x[i])" } else { "" })?;
                Node::Call(Builtin::Reduce(reduction), args)
            }
            ("dot", _) => wants(2, "").map(|()| Node::Call(Builtin::Dot, args))?,
            ("matmul", _) => wants(2, "").map(|()| Node::Call(Builtin::Product, args))?,
            ("transpose", _) => wants(1, "").map(|()| Node::Call(Builtin::Transpose, args))?,
            _ => match Function::named(name) {
                Some(f) => wants(f.arity(), "").map(|()| Node::Apply(f, args))?,
                None => return Err(unknown_function(name, at)),
            },
        };
        Ok(self.push(node, span))
    }

    /// `sum(i, from, to, body)`, from the variable on.
    fn sum(&mut self, variable: &str, at: Span, open: Span) -> Parsed {
        check_name(variable, self.peek().span)?;
        self.at += 2;
        let from = self.expression(0)?;
        self.expect(",", None)?;
        let to = self.expression(0)?;
        self.expect(",", None)?;
        let place = self.push(Node::Number(0.0), at);
        let body = self.expression(0)?;
        let span = at.to(self.expect(")", Some(open))?);
        self.nodes[place] = Node::Loop { variable: variable.to_string(), from, to, body };
        Ok(self.push(Node::Sum(place), span))
    }
}

enum Operator {
    Apply(Function),
    Compare(Relation),
    Logic(Connective),
    Product,
}

const COMPARISON: u8 = 3;
const UNARY: u8 = 6;
const POWER: u8 = 7;

/// How tightly a sign binds, and what it means.
fn binary(kind: Kind) -> Option<(u8, Operator)> {
    let apply = |level, f| Some((level, Operator::Apply(f)));
    match kind {
        Kind::Name("or") => Some((1, Operator::Logic(Connective::Or))),
        Kind::Name("and") => Some((2, Operator::Logic(Connective::And))),
        Kind::Sign("+") => apply(4, Function::Add),
        Kind::Sign("-") => apply(4, Function::Sub),
        Kind::Sign("*") => apply(5, Function::Mul),
        Kind::Sign("/") => apply(5, Function::Div),
        Kind::Sign("%") => apply(5, Function::Rem),
        Kind::Sign("@") => Some((5, Operator::Product)),
        Kind::Sign("^") => apply(POWER, Function::Pow),
        Kind::Sign(sign) => Relation::of(sign).map(|r| (COMPARISON, Operator::Compare(r))),
        _ => None,
    }
}
