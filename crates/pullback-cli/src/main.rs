//! The program `pullback`: derivatives of formulas and graphs, computed, explained and drawn.

mod account;
#[cfg(test)]
mod agreement;
mod args;
mod derivatives;
mod draw;
mod explain;
mod failure;
mod files;
mod graph;
mod ir;
mod lower;
mod minimize;
mod model;
mod npy;
mod plot;
mod points;
mod profile;
mod report;
mod rules;
mod subject;
mod values;
mod view;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use derivatives::Kind;
use failure::{BAD_INPUT, Failure, Result};
use std::process::ExitCode;
use subject::{parse_point, write_out};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // The library panics where a rule is broken deep inside; here that is one message too, without a backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(|| run(cli.command)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(Failure { message: text.unwrap_or_else(|| "the computation failed".into()), code: BAD_INPUT })
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { message, code }) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Explain(args) => explain(&args),
        Command::Grad(args) => derivatives::run(&Kind::Gradient, &args),
        Command::Jacobian(args) => derivatives::run(&Kind::Jacobian, &args),
        Command::Hessian(args) => derivatives::run(&Kind::Hessian, &args),
        Command::Hvp(args) => derivatives::run(&Kind::Product { along: args.along }, &args.of),
        Command::Taylor(args) => {
            derivatives::run(&Kind::Taylor { along: args.along, order: usize::from(args.order) }, &args.of)
        }
        Command::Check(args) => derivatives::run(&Kind::Check { tolerance: args.tolerance }, &args.of),
        Command::Graph(args) => graph::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Minimize(args) => minimize::run(&args),
        Command::Run(args) => ir::run(&args),
        Command::Opt(args) => ir::opt(&args),
        Command::Fmt(args) => ir::fmt(&args),
        Command::Verify(args) => ir::verify(&args),
        Command::View(args) => view::run(&args),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pullback", &mut out);
            write_out(None, &out)
        }
        Command::Man => {
            let mut out = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut out).map_err(failure::io("manual page"))?;
            write_out(None, &out)
        }
    }
}

fn explain(args: &args::Explain) -> Result<()> {
    let function = args.subject.function()?;
    let point = match args.subject.point()? {
        // A function of nothing has only one point.
        None if function.names().is_empty() => Some(Vec::new()),
        point => point,
    };
    let model = match &point {
        Some(point) => function.at(point)?,
        None => function.anywhere()?,
    };
    let inputs = match &point {
        Some(point) => Some(model.values(point)?),
        None => None,
    };
    let along = match (&args.along, &inputs) {
        (Some(text), Some(values)) => {
            let given = parse_point("--along", text)?;
            let part = |(i, x): (&model::Input, &pullback::Tensor)| match given.iter().find(|g| g.0 == i.name)
            {
                Some((_, a)) => model::tensor(a),
                None => x.zeros_like(),
            };
            Some(model.inputs.iter().zip(values).map(part).collect())
        }
        (Some(_), None) => return Err(Failure::new("--along needs a point: say --at")),
        (None, _) => None,
    };
    let output = model.output(args.output.as_deref())?;
    let options = explain::Options {
        forward: args.forward,
        output,
        along,
        digits: args.format.digits(),
        all: args.all,
    };
    let report = explain::explain(&model, inputs.as_deref(), &options)?;
    write_out(args.format.out.as_ref(), report.write(args.format.format()).as_bytes())
}
