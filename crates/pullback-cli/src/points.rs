//! Many points from a CSV file: the names of the inputs in the first line, a point in every other.

use crate::failure::{Failure, Result};
use crate::model::Point;
use pullback_expr::scalar::Array;

/// A column: the input, and the position in it (from 1) if it is a vector or a matrix.
struct Column {
    name: String,
    place: Vec<usize>,
}

pub fn parse(name: &str, text: &str) -> Result<Vec<Point>> {
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    let Some((_, header)) = lines.next() else {
        return Err(Failure::new(format!("{name}: expected a first line with the names of the inputs")));
    };
    let columns = fields(header.trim_start_matches('\u{feff}'))
        .iter()
        .map(|f| column(f))
        .collect::<Option<Vec<Column>>>();
    let Some(columns) = columns else {
        return Err(Failure::new(format!(
            "{name}:1: expected names such as x or w[1,2], separated by commas"
        )));
    };
    let mut points = Vec::new();
    for (k, line) in lines {
        let place = format!("{name}:{}", k + 1);
        let fields = fields(line);
        if fields.len() != columns.len() {
            return Err(Failure::new(format!(
                "{place}: {} values for {} names",
                fields.len(),
                columns.len()
            )));
        }
        let number = |f: &String| {
            f.trim().parse::<f64>().map_err(|_| Failure::new(format!("{place}: `{f}` is not a number")))
        };
        let values = fields.iter().map(number).collect::<Result<Vec<f64>>>()?;
        points.push(gather(&columns, &values).map_err(|e| Failure::new(format!("{name}:1: {e}")))?);
    }
    match points.is_empty() {
        true => Err(Failure::new(format!("{name}: there are no points after the first line"))),
        false => Ok(points),
    }
}

/// Fields separated by commas, semicolons or tabs; commas in quotes and in square brackets belong to the field.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let (mut quoted, mut depth) = (false, 0);
    for c in line.trim_end_matches('\r').chars() {
        match c {
            '"' => quoted = !quoted,
            ',' | ';' | '\t' if !quoted && depth == 0 => out.push(String::new()),
            c => {
                depth += i32::from(c == '[') - i32::from(c == ']');
                out.last_mut().expect("there is always a field").push(c);
            }
        }
    }
    out
}

fn column(field: &str) -> Option<Column> {
    let field = field.trim();
    let (name, place) = match field.split_once('[') {
        None => (field, Vec::new()),
        Some((name, rest)) => {
            let places =
                rest.strip_suffix(']')?.split(',').map(|p| p.trim().parse::<usize>().ok().filter(|p| *p > 0));
            (name, places.collect::<Option<Vec<usize>>>()?)
        }
    };
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && place.len() <= 2;
    is_name.then(|| Column { name: name.to_string(), place })
}

fn gather(columns: &[Column], values: &[f64]) -> std::result::Result<Point, String> {
    let mut point: Point = Vec::new();
    for c in columns {
        if point.iter().any(|p| p.0 == c.name) {
            continue;
        }
        let own: Vec<usize> = (0..columns.len()).filter(|k| columns[*k].name == c.name).collect();
        let length =
            |axis: usize| own.iter().filter_map(|k| columns[*k].place.get(axis)).max().copied().unwrap_or(1);
        let shape: Vec<usize> = (0..c.place.len()).map(length).collect();
        let total = shape.iter().try_fold(1usize, |a, n| a.checked_mul(*n)).unwrap_or(usize::MAX);
        let same_rank = own.iter().all(|k| columns[*k].place.len() == c.place.len());
        if total != own.len() || !same_rank {
            return Err(format!("the columns of `{}` are not all of its elements, each once", c.name));
        }
        let mut elements = vec![f64::NAN; total];
        for k in own {
            let at = columns[k].place.iter().zip(&shape).fold(0, |at, (p, n)| at * n + p - 1);
            elements[at] = values[k];
        }
        point.push((c.name.clone(), Array { shape, elements }));
    }
    Ok(point)
}
