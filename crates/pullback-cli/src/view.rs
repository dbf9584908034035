//! `pullback view`: one page with everything in it, written to a file or served on the loopback address.

use crate::account::Listing;
use crate::args;
use crate::failure::{Failure, Result, io};
use crate::graph::picture;
use crate::model::{Model, Point};
use crate::subject::{Function, write_out};
use pullback_expr::json::Json;
use pullback_expr::layout::Direction;
use pullback_expr::{Digits, number};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

const PAGE: &str = include_str!("../page/index.html");
const STYLE: &str = include_str!("../page/style.css");
const SCRIPT: &str = include_str!("../page/app.js");
const ENGINE: &[u8] = include_bytes!("../page/engine.wasm");

pub fn run(args: &args::View) -> Result<()> {
    let function = args.subject.function()?;
    let given = args.subject.point()?;
    let page = page(&function, given)?;
    match &args.out {
        Some(_) => write_out(args.out.as_ref(), page.as_bytes()),
        None => serve(page.as_bytes(), args.port, !args.no_open),
    }
}

fn page(function: &Function, given: Option<Point>) -> Result<String> {
    let (data, engine) = match function {
        Function::Formula(formula) => {
            let mut point = given.unwrap_or_default();
            for name in function.names() {
                if !point.iter().any(|p| p.0 == name) {
                    point.push((name, pullback_expr::scalar::Array::number(1.0)));
                }
            }
            // What is wrong with the formula or the point is said here, not in the page.
            function.at(&point)?;
            let values = point.iter().map(|(name, a)| {
                Json::object([
                    ("name", Json::text(name)),
                    ("value", Json::text(written(&a.shape, &a.elements))),
                ])
            });
            let text = formula.source.text.trim();
            (Json::object([("expression", Json::text(text)), ("point", Json::list(values))]), base64(ENGINE))
        }
        Function::Graph(model) => (drawn(model, given)?, String::new()),
    };
    // The parts are put in one by one, so that no part is searched for the mark of another.
    let mut page = String::with_capacity(PAGE.len() + engine.len() + SCRIPT.len() + STYLE.len());
    let mut rest = PAGE;
    for (mark, part) in
        [("style", STYLE), ("data", &data.to_string()), ("engine", &engine), ("script", SCRIPT)]
    {
        let (before, after) =
            rest.split_once(&format!("/*{{{mark}}}*/")).expect("the page has a place for each part");
        page.push_str(before);
        page.push_str(part);
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

/// A graph file has no formula to edit: the page gets its trace.
fn drawn(model: &Model, given: Option<Point>) -> Result<Json> {
    let Some(point) = given.or_else(|| model.inputs.is_empty().then(Vec::new)) else {
        return Err(Failure::new("a graph needs a point: say --at"));
    };
    let listing = Listing::new(model);
    let values = listing.evaluate(&model.values(&point)?)?;
    let adjoints = listing.pull(&values, 0)?;
    let picture = picture(&listing, Some((&values, &adjoints)), Digits::Significant(6));
    let json = picture.to_json(Direction::Right);
    Ok(Json::object([("expression", Json::text(&model.title)), ("picture", json)]))
}

/// A value in the language of expressions.
fn written(shape: &[usize], elements: &[f64]) -> String {
    let show = |v: &f64| number(*v, Digits::All);
    match shape {
        [] => show(&elements[0]),
        _ => {
            let columns = shape.get(1).copied().unwrap_or(elements.len()).max(1);
            let rows: Vec<String> =
                elements.chunks(columns).map(|r| r.iter().map(show).collect::<Vec<_>>().join(",")).collect();
            format!("[{}]", rows.join(";"))
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let all = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for k in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * k) & 63) as usize];
            out.push(if k <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

fn serve(page: &[u8], port: u16, open: bool) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(io(format!("port {port}")))?;
    let address = format!("http://{}/", listener.local_addr().map_err(io("the address"))?);
    eprintln!("serving {address} until you press Ctrl-C");
    if open && !open_browser(&address) {
        eprintln!("no browser was found; open the address yourself, or write the page with --out FILE");
    }
    for stream in listener.incoming() {
        // A visitor who goes away early is none of our business.
        let _ = stream.and_then(|s| answer(s, page));
    }
    Ok(())
}

fn answer(mut stream: TcpStream, page: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    // To the end of the head: what is left unread when a connection closes cuts off the answer.
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.len() < 1 << 16 {
        match stream.read(&mut part)? {
            0 => break,
            n => request.extend_from_slice(&part[..n]),
        }
    }
    let wanted = request.starts_with(b"GET / ");
    let (status, body): (&str, &[u8]) = if wanted { ("200 OK", page) } else { ("404 Not Found", b"") };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

fn open_browser(address: &str) -> bool {
    let (program, args): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start"]),
        _ => ("xdg-open", &[]),
    };
    let quiet = std::process::Stdio::null;
    std::process::Command::new(program)
        .args(args)
        .arg(address)
        .stdout(quiet())
        .stderr(quiet())
        .spawn()
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_remainder() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, text) in cases {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
