//! The functions that the page calls.
//!
//! A text goes in as `expression NUL point NUL direction`, JSON comes out, both through memory that the page can see.

use crate::json::Json;
use crate::layout::Direction;
use crate::number_format::Digits;
use crate::problem::Problem;
use crate::{parse, picture, scalar};
use std::cell::RefCell;

/// More nodes than this are not drawn.
const MANY: usize = 20_000;

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Room for a text of this length; the page writes it there.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|t| {
        t.clear();
        t.resize(length, 0);
        t.as_mut_ptr()
    })
}

/// Reads the text, and leaves the answer in its place.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> *const u8 {
    TEXT.with_borrow_mut(|t| {
        let text = String::from_utf8_lossy(t).into_owned();
        *t = answer(&text).to_string().into_bytes();
        t.as_ptr()
    })
}

/// The length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn length() -> usize {
    TEXT.with_borrow(Vec::len)
}

fn answer(text: &str) -> Json {
    let mut parts = text.split('\0');
    let (expression, point) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let direction = if parts.next() == Some("down") { Direction::Down } else { Direction::Right };
    match trace(expression, point, direction) {
        Ok(json) => json,
        Err((problem, of)) => Json::object([(
            "error",
            Json::object([
                ("message", Json::text(&problem.message)),
                ("help", problem.help.clone().map_or(Json::Null, Json::Text)),
                ("of", Json::text(of)),
                ("span", problem.span.map_or(Json::Null, |s| Json::list([s.start.into(), s.end.into()]))),
            ]),
        )]),
    }
}

fn trace(expression: &str, point: &str, direction: Direction) -> Result<Json, (Problem, &'static str)> {
    let program = parse(expression).map_err(|p| (p, "expression"))?;
    let mut values = scalar::point(point).map_err(|p| (p, "point"))?;
    values.retain(|v| program.inputs().contains(&v.0));
    for name in program.inputs() {
        if !values.iter().any(|v| v.0 == *name) {
            values.push((name.clone(), scalar::Array::number(1.0)));
        }
    }
    values.sort_by_key(|v| program.inputs().iter().position(|n| *n == v.0));
    let trace = scalar::trace(&program, &values).map_err(|p| (p, "expression"))?;
    if let Some(problem) = trace.trouble() {
        return Err((problem, "expression"));
    }
    if trace.steps.len() > MANY {
        let message = format!("{} steps are too many to draw", trace.steps.len());
        return Err((Problem::new(message), "expression"));
    }
    let picture = picture::of_trace(&trace, 0, Digits::Significant(6));
    let inputs = values.iter().map(|(name, a)| {
        Json::object([
            ("name", Json::text(name)),
            ("counts", Json::Bool(program.counts().contains(name))),
            ("shape", Json::list(a.shape.iter().map(|n| Json::from(*n)))),
            ("values", Json::list(a.elements.iter().map(|v| Json::Number(*v)))),
        ])
    });
    let mut fields = vec![("inputs".to_string(), Json::list(inputs))];
    if let Json::Object(more) = picture.to_json(direction) {
        fields.extend(more);
    }
    Ok(Json::Object(fields))
}
