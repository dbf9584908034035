//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  pullback explain 'x1*x2 + sin(x1)' --at x1=2,x2=3
  pullback grad 'ln(x1) + x1*x2 - sin(x2)' --at x1=2,x2=5 --json
  pullback hessian '(1 - x)^2 + 100*(y - x^2)^2' --at x=1,y=1
  pullback minimize '(1 - x)^2 + 100*(y - x^2)^2' --from x=-1.2,y=1 --method lbfgs
  pullback plot 'sin(x)/x' --range -10..10
  pullback graph '(x + y)^2' --at x=2,y=3 --svg > graph.svg
  pullback view 'tanh(w*x + b)' --at w=1,x=2,b=0.5
  echo 'x^2 + x' | pullback grad - --at x=3

Exit codes: 0 done, 1 a check failed or a search has not converged, 2 the input cannot be used.
The language of expressions is described in docs/expressions.md, the commands in docs/cli.md.";

#[derive(Parser)]
#[command(name = "pullback", version, about = "Exact derivatives of formulas and graphs: computed, explained, drawn", after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// The forward trace and the reverse trace, step by step, down to the gradient
    #[command(after_help = "Example: pullback explain 'x1*x2 + sin(x1)' --at x1=2,x2=3")]
    Explain(Explain),
    /// The value and the gradient
    #[command(
        after_help = "Example: pullback grad 'x^2*y' --at x=3,y=2 --json\n         pullback grad 'x^2*y' --points points.csv --csv"
    )]
    Grad(Derivative),
    /// All first derivatives of all outputs
    #[command(after_help = "Example: pullback jacobian 'r*cos(t), r*sin(t)' --at r=2,t=pi/6")]
    Jacobian(Derivative),
    /// All second derivatives of a number
    #[command(after_help = "Example: pullback hessian 'x^2*y' --at x=3,y=2")]
    Hessian(Derivative),
    /// The Hessian times a vector, without the Hessian
    #[command(after_help = "Example: pullback hvp 'x^2*y' --at x=3,y=2 --along x=1,y=0")]
    Hvp(Along),
    /// Taylor coefficients along a line through the point
    #[command(after_help = "Example: pullback taylor 'exp(x)' --at x=0 --order 5")]
    Taylor(Taylor),
    /// The gradient against finite differences; exit code 1 if they differ
    #[command(after_help = "Example: pullback check 'sin(x)*exp(y)' --at x=1,y=0.5")]
    Check(Check),
    /// The computation graph with values and adjoints
    #[command(
        after_help = "Example: pullback graph '(x + y)^2' --at x=2,y=3\n         pullback graph '(x + y)^2' --at x=2,y=3 --svg > graph.svg"
    )]
    Graph(Graph),
    /// A function of one variable with its derivatives, or level lines and the gradient field of one of two
    #[command(
        after_help = "Example: pullback plot 'sin(x)' --range -6..6 --derivatives 2\n         pullback plot 'x^2 - y^2' --range -2..2 --svg > field.svg"
    )]
    Plot(Plot),
    /// Searches a minimum from a start point
    #[command(
        after_help = "Example: pullback minimize '(1-x)^2 + 100*(y-x^2)^2' --from x=-1.2,y=1 --plot path.svg"
    )]
    Minimize(Minimize),
    /// Evaluates a graph file
    #[command(after_help = "Example: pullback run net.ir --input x.npy --input weights.safetensors --grad")]
    Run(Run),
    /// Shows what each pass of the optimiser does to a graph
    #[command(after_help = "Example: pullback opt net.ir")]
    Opt(GraphFile),
    /// Writes a graph file in its normal form
    #[command(after_help = "Example: pullback fmt net.ir > tidy.ir")]
    Fmt(GraphFile),
    /// Checks a graph file: types, shapes, order
    #[command(after_help = "Example: pullback verify net.ir")]
    Verify(GraphFile),
    /// A page to step through the trace, change the formula and move the inputs
    #[command(after_help = "Example: pullback view 'x1*x2 + sin(x1)' --at x1=2,x2=3 --out page.html")]
    View(View),
    /// Writes completions for a shell
    #[command(after_help = "Example: pullback completions bash > /etc/bash_completion.d/pullback")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Writes the manual page
    #[command(after_help = "Example: pullback man > pullback.1")]
    Man,
}

/// What is differentiated, and where.
#[derive(Args, Clone, Default)]
pub struct Subject {
    /// The expression; `-` or nothing reads it from standard input
    pub expression: Option<String>,
    /// Reads the expression, or a graph if it ends in .ir, from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "expression")]
    pub file: Option<PathBuf>,
    /// The point, such as x1=2,x2=3 or w=[1,2;3,4],x=[1,0]
    #[arg(short = 'a', long, value_name = "POINT", allow_hyphen_values = true)]
    pub at: Vec<String>,
}

/// How the result is written.
#[derive(Args, Clone, Default)]
pub struct Output {
    /// No colour, ASCII only
    #[arg(long, group = "format", help_heading = "Output")]
    pub plain: bool,
    /// Markdown tables
    #[arg(long, group = "format", help_heading = "Output")]
    pub markdown: bool,
    /// LaTeX tables
    #[arg(long, group = "format", help_heading = "Output")]
    pub latex: bool,
    /// Comma-separated values
    #[arg(long, group = "format", help_heading = "Output")]
    pub csv: bool,
    /// JSON
    #[arg(long, group = "format", help_heading = "Output")]
    pub json: bool,
    /// Significant digits in tables
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=17), help_heading = "Output")]
    pub digits: u8,
    /// Writes to a file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    pub subject: Subject,
    /// Forward mode: tangents instead of adjoints
    #[arg(long)]
    pub forward: bool,
    /// The direction of the tangents; along each input in turn without it
    #[arg(long, value_name = "DIRECTION", requires = "forward", allow_hyphen_values = true)]
    pub along: Option<String>,
    /// Which output, by name or number
    #[arg(long, value_name = "OUTPUT")]
    pub output: Option<String>,
    /// Prints every step of a long graph
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub format: Output,
}

#[derive(Args)]
pub struct Derivative {
    #[command(flatten)]
    pub subject: Subject,
    /// Many points: a CSV file with the names of the inputs in its first line; `-` for standard input
    #[arg(short, long, value_name = "CSV")]
    pub points: Option<PathBuf>,
    /// A NumPy array
    #[arg(long, group = "format", help_heading = "Output")]
    pub npy: bool,
    #[command(flatten)]
    pub format: Output,
}

#[derive(Args)]
pub struct Along {
    #[command(flatten)]
    pub of: Derivative,
    /// The vector
    #[arg(long, value_name = "DIRECTION", allow_hyphen_values = true)]
    pub along: String,
}

#[derive(Args)]
pub struct Taylor {
    #[command(flatten)]
    pub of: Derivative,
    /// The direction of the line; needed if there is more than one number to vary
    #[arg(long, value_name = "DIRECTION", allow_hyphen_values = true)]
    pub along: Option<String>,
    /// The highest power
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=60))]
    pub order: u8,
}

#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    pub of: Derivative,
    /// Greatest error, relative to one plus the size of the derivative
    #[arg(long, default_value_t = 1e-6, value_name = "ERROR")]
    pub tolerance: f64,
}

#[derive(Args)]
pub struct Graph {
    #[command(flatten)]
    pub subject: Subject,
    /// The text of the graph, as `run`, `opt`, `fmt` and `verify` read it
    #[arg(long, group = "kind")]
    pub ir: bool,
    /// Graphviz
    #[arg(long, group = "kind")]
    pub dot: bool,
    /// A drawing
    #[arg(long, group = "kind")]
    pub svg: bool,
    /// A picture
    #[arg(long, group = "kind")]
    pub png: bool,
    /// ASCII only
    #[arg(long, group = "kind")]
    pub plain: bool,
    /// Arrows from top to bottom instead of left to right
    #[arg(long)]
    pub down: bool,
    /// Which output the adjoints are of, by name or number
    #[arg(long, value_name = "OUTPUT")]
    pub output: Option<String>,
    /// Draws every node of a large graph
    #[arg(long)]
    pub all: bool,
    /// Significant digits
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=17))]
    pub digits: u8,
    /// Writes to a file instead of standard output; .dot, .svg and .png say what
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct Plot {
    #[command(flatten)]
    pub subject: Subject,
    /// The range of the variable, or of both: -5..5, or x=-5..5,y=0..2
    #[arg(short, long, default_value = "-5..5", value_name = "RANGE", allow_hyphen_values = true)]
    pub range: String,
    /// How many derivatives to plot beside the function of one variable
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    pub derivatives: u8,
    /// A drawing
    #[arg(long, group = "kind")]
    pub svg: bool,
    /// A picture
    #[arg(long, group = "kind")]
    pub png: bool,
    /// Columns of the terminal
    #[arg(long, default_value_t = 78, value_name = "N", value_parser = clap::value_parser!(u16).range(20..=400))]
    pub width: u16,
    /// Writes to a file instead of standard output; .svg and .png say what
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Method {
    /// Gradient descent with a fixed step
    Gd,
    /// Adam
    Adam,
    /// Limited-memory quasi-Newton
    Lbfgs,
    /// Newton, with the exact Hessian
    Newton,
}

#[derive(Args)]
pub struct Minimize {
    #[command(flatten)]
    pub subject: Subject,
    /// The start point; the same as --at
    #[arg(long, value_name = "POINT", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// The method
    #[arg(short, long, value_enum, default_value = "lbfgs")]
    pub method: Method,
    /// The step of gradient descent and Adam
    #[arg(long, value_name = "STEP")]
    pub step: Option<f64>,
    /// The most iterations
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub iterations: usize,
    /// Stops when the gradient is shorter than this
    #[arg(long, default_value_t = 1e-8, value_name = "LENGTH")]
    pub tolerance: f64,
    /// Draws the path over level lines (two numbers) or the values (else), as .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    #[command(flatten)]
    pub format: Output,
}

#[derive(Args)]
pub struct GraphFile {
    /// The graph file; `-` for standard input
    #[arg(required_unless_present = "named")]
    file: Option<PathBuf>,
    /// The graph file, as other commands have it
    #[arg(short, long = "file", value_name = "FILE", conflicts_with = "file")]
    named: Option<PathBuf>,
}

impl GraphFile {
    /// Where the graph is.
    pub fn path(&self) -> &Path {
        self.named.as_deref().or(self.file.as_deref()).expect("one of the two is required")
    }
}

#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    pub of: GraphFile,
    /// Values of inputs: .npy (name=FILE, or the only input), .npz, .safetensors or .json, by name
    #[arg(short, long, value_name = "FILE")]
    pub input: Vec<String>,
    /// Values of inputs, such as x=2,w=[1,2]
    #[arg(short = 'a', long, value_name = "POINT", allow_hyphen_values = true)]
    pub at: Vec<String>,
    /// The gradient of the first output with respect to every input
    #[arg(long)]
    pub grad: bool,
    /// Optimises and compiles the graph before it runs
    #[arg(long)]
    pub compile: bool,
    /// Both traces, as `explain` prints them
    #[arg(long)]
    pub explain: bool,
    /// The time each line of the graph took, or with --compile each kernel, on standard error
    #[arg(long)]
    pub profile: bool,
    #[command(flatten)]
    pub format: Output,
}

#[derive(Args)]
pub struct View {
    #[command(flatten)]
    pub subject: Subject,
    /// Writes the page to a file instead of serving it
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The port on the loopback address; any free one without it
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub port: u16,
    /// Serves the page without opening a browser
    #[arg(long)]
    pub no_open: bool,
}
