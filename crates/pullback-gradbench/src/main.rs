//! Pullback as a tool of GradBench: answers its messages, a line of JSON each, on standard output.
//!
//! Every eval is a file of [`evals`], written on the public interface of the library. One thread is used, unless the program
//! is started with `--multithreaded`.

mod evals;
mod protocol;

use protocol::{Message, Reply};
use std::io::{BufRead, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => pullback::set_num_threads(1),
        [flag] if flag == "--multithreaded" => {}
        _ => {
            eprintln!("usage: pullback-gradbench [--multithreaded] < messages > responses");
            return ExitCode::FAILURE;
        }
    }
    match serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pullback-gradbench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One response for each message, until the messages end.
fn serve(messages: impl BufRead, mut responses: impl Write) -> std::io::Result<()> {
    for line in messages.lines() {
        let reply = answer(&serde_json::from_str(&line?)?);
        serde_json::to_writer(&mut responses, &reply)?;
        responses.write_all(b"\n")?;
        responses.flush()?;
    }
    Ok(())
}

fn answer(message: &Message) -> Reply {
    let id = message.id;
    match (message.kind, message.module, message.function, message.input) {
        ("start", ..) => Reply { tool: Some("pullback"), ..Reply::to(id) },
        ("define", Some(module), ..) => match evals::find(module) {
            Some(_) => Reply { success: Some(true), ..Reply::to(id) },
            None => Reply::failure(id, format!("there is no eval {module:?}")),
        },
        ("evaluate", Some(module), Some(function), Some(input)) => {
            let found = evals::find(module).ok_or_else(|| format!("there is no eval {module:?}"));
            match found.and_then(|eval| eval(function, input)) {
                Ok(answer) => Reply {
                    success: Some(true),
                    output: Some(answer.output),
                    timings: Some(answer.timings),
                    ..Reply::to(id)
                },
                Err(error) => Reply::failure(id, error),
            }
        }
        ("evaluate" | "define", ..) => Reply::failure(id, "a field is missing".to_string()),
        _ => Reply::to(id),
    }
}
