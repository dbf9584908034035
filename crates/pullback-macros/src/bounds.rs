//! Which bounds a generic type needs: those of the parameters that its fields use.
//!
//! Bounds on parameters and not on field types: a bound on the type of a field of a recursive type would need itself.

use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{Generics, Ident, PathSegment, Type, TypePath, WherePredicate, parse_quote};

/// Adds `bound` for every type parameter, and every associated type of one, that occurs in `types`.
pub(crate) fn require<'a>(
    generics: &mut Generics,
    types: impl Iterator<Item = &'a Type>,
    bound: &TokenStream,
) {
    let mut found =
        Found { parameters: generics.type_params().map(|p| p.ident.clone()).collect(), used: vec![] };
    types.for_each(|t| found.visit_type(t));
    if found.used.is_empty() {
        return;
    }
    let predicates = found.used.iter().map(|t| -> WherePredicate { parse_quote!(#t: #bound) });
    generics.make_where_clause().predicates.extend(predicates);
}

struct Found {
    parameters: HashSet<Ident>,
    used: Vec<TokenStream>,
}

impl Found {
    fn add(&mut self, t: TokenStream) {
        if self.used.iter().all(|u| u.to_string() != t.to_string()) {
            self.used.push(t);
        }
    }
}

impl<'a> Visit<'a> for Found {
    fn visit_type_path(&mut self, t: &'a TypePath) {
        if t.qself.is_none()
            && let Some(first) = t.path.segments.first()
            && self.parameters.contains(&first.ident)
        {
            self.add(quote!(#t));
        }
        visit::visit_type_path(self, t);
    }

    /// `PhantomData` is a tree, and can be cloned, whatever it stands for.
    fn visit_path_segment(&mut self, segment: &'a PathSegment) {
        if segment.ident != "PhantomData" {
            visit::visit_path_segment(self, segment);
        }
    }
}
