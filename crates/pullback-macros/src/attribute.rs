//! The attribute `#[tree(skip)]`, and the errors for everything that is not quite it.

use syn::{Attribute, Error, Field, Meta, Result};

/// Whether the field is marked as static.
pub(crate) fn is_skipped(field: &Field) -> Result<bool> {
    let mut skipped = false;
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("tree")) {
        if !matches!(&attribute.meta, Meta::List(list) if !list.tokens.is_empty()) {
            return Err(Error::new_spanned(attribute, "expected `#[tree(skip)]`"));
        }
        attribute.parse_nested_meta(|option| {
            if !option.path.is_ident("skip") {
                return Err(option.error("unknown option; the only one is `skip`"));
            }
            if skipped {
                return Err(option.error("`skip` is given twice"));
            }
            skipped = true;
            Ok(())
        })?;
    }
    Ok(skipped)
}

/// Refuses the attribute where it would have no meaning.
pub(crate) fn refuse(attributes: &[Attribute], on: &str) -> Result<()> {
    match attributes.iter().find(|a| a.path().is_ident("tree")) {
        Some(a) => {
            Err(Error::new_spanned(a, format!("`#[tree(skip)]` marks a field; it cannot be put on {on}")))
        }
        None => Ok(()),
    }
}
