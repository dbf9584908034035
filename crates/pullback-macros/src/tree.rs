//! The implementation that `#[derive(Tree)]` writes.

use crate::{attribute, bounds};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, Member, Result, Type};

/// One field, and the variable that it is bound to while it is matched.
struct Part {
    member: Member,
    ty: Type,
    skipped: bool,
    variable: Ident,
}

/// A variant of an enum, or all there is of a struct.
struct Shape {
    /// `Self` or `Self::Variant`.
    path: TokenStream,
    parts: Vec<Part>,
}

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    let shapes = shapes(&input)?;
    let mut generics = input.generics;
    let fields =
        |skipped| shapes.iter().flat_map(|s| &s.parts).filter(move |p| p.skipped == skipped).map(|p| &p.ty);
    bounds::require(&mut generics, fields(false), &quote!(::pullback::Tree));
    bounds::require(&mut generics, fields(true), &quote!(::core::clone::Clone));

    let name = &input.ident;
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let visit = matched(&shapes, Shape::visit);
    let visit_mut = matched(&shapes, Shape::visit_mut);
    let map = matched(&shapes, Shape::map);
    let statics = matched(&shapes, Shape::statics);
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::pullback::Tree for #name #arguments #conditions {
            fn visit<'__tree>(
                &'__tree self,
                path: &mut ::pullback::Path,
                f: &mut dyn ::core::ops::FnMut(&::pullback::Path, &'__tree ::pullback::Tensor),
            ) {
                #visit
            }

            fn visit_mut<'__tree>(
                &'__tree mut self,
                f: &mut dyn ::core::ops::FnMut(&'__tree mut ::pullback::Tensor),
            ) {
                #visit_mut
            }

            fn map(&self, f: &mut dyn ::core::ops::FnMut(&::pullback::Tensor) -> ::pullback::Tensor) -> Self {
                #map
            }

            fn statics(&self, out: &mut ::pullback::Statics) {
                #[allow(unused_imports, reason = "only skipped fields are looked at through it")]
                use ::pullback::{NotShown as _, Shown as _};
                #statics
            }
        }
    })
}

/// Reads the definition; all that is wrong with its attributes is reported at once.
fn shapes(input: &DeriveInput) -> Result<Vec<Shape>> {
    let mut errors = attribute::refuse(&input.attrs, "a type").err();
    let mut note = |e: Error| match &mut errors {
        Some(all) => all.combine(e),
        None => errors = Some(e),
    };
    let shapes = match &input.data {
        Data::Struct(data) => vec![Shape::new(quote!(Self), &data.fields, &mut note)],
        Data::Enum(data) => {
            let shape = |v: &syn::Variant| {
                attribute::refuse(&v.attrs, "a variant").unwrap_or_else(&mut note);
                let variant = &v.ident;
                Shape::new(quote!(Self::#variant), &v.fields, &mut note)
            };
            data.variants.iter().map(shape).collect()
        }
        Data::Union(data) => {
            note(Error::new_spanned(
                data.union_token,
                "a union cannot be a Tree: nothing says which of its fields is alive; use an enum",
            ));
            vec![]
        }
    };
    errors.map_or(Ok(shapes), Err)
}

/// A match over the shapes.
fn matched(shapes: &[Shape], arm: impl Fn(&Shape) -> TokenStream) -> TokenStream {
    if shapes.is_empty() {
        return quote!(match *self {});
    }
    let arms = shapes.iter().map(arm);
    quote!(match self { #(#arms)* })
}

impl Shape {
    fn new(path: TokenStream, fields: &Fields, note: &mut impl FnMut(Error)) -> Shape {
        let parts = fields.members().zip(fields).enumerate().map(|(k, (member, field))| Part {
            member,
            ty: field.ty.clone(),
            skipped: attribute::is_skipped(field).unwrap_or_else(|e| {
                note(e);
                true
            }),
            variable: format_ident!("field_{k}", span = Span::mixed_site()),
        });
        Shape { path, parts: parts.collect() }
    }

    /// Braces fit all three forms: `Self { 0: a }` is a tuple struct, `Self {}` a unit.
    fn visit(&self) -> TokenStream {
        let path = &self.path;
        let parts = || self.parts.iter().filter(|p| !p.skipped);
        let pattern = parts().map(|Part { member, variable, .. }| quote!(#member: #variable,));
        let visits = parts().map(|Part { member, variable, ty, .. }| {
            let segment = segment(member);
            let visit = at(ty, quote!(::pullback::Tree), quote!(visit));
            quote!(path.at(#segment, |path| #visit(#variable, path, f));)
        });
        quote!(#path { #(#pattern)* .. } => { #(#visits)* })
    }

    fn visit_mut(&self) -> TokenStream {
        let path = &self.path;
        let parts = || self.parts.iter().filter(|p| !p.skipped);
        let pattern = parts().map(|Part { member, variable, .. }| quote!(#member: #variable,));
        let visits = parts().map(|Part { variable, ty, .. }| {
            let visit = at(ty, quote!(::pullback::Tree), quote!(visit_mut));
            quote!(#visit(#variable, f);)
        });
        quote!(#path { #(#pattern)* .. } => { #(#visits)* })
    }

    fn map(&self) -> TokenStream {
        let path = &self.path;
        let pattern = self.parts.iter().map(|Part { member, variable, .. }| quote!(#member: #variable,));
        let values = self.parts.iter().map(|Part { member, variable, ty, skipped }| {
            if *skipped {
                let clone = at(ty, quote!(::core::clone::Clone), quote!(clone));
                quote!(#member: #clone(#variable),)
            } else {
                let map = at(ty, quote!(::pullback::Tree), quote!(map));
                quote!(#member: #map(#variable, f),)
            }
        });
        quote!(#path { #(#pattern)* } => #path { #(#values)* },)
    }

    /// What is not a tensor: the variant, what the fields write, and skipped fields if they can be shown.
    fn statics(&self) -> TokenStream {
        let path = &self.path;
        let tag = path.to_string().replace("Self :: ", "");
        let pattern = self.parts.iter().map(|Part { member, variable, .. }| quote!(#member: #variable,));
        let notes = self.parts.iter().map(|Part { member, variable, ty, skipped }| {
            if *skipped {
                let name = segment(member);
                quote!((&::pullback::Probe(#variable)).note(#name, out);)
            } else {
                let statics = at(ty, quote!(::pullback::Tree), quote!(statics));
                let segment = segment(member);
                quote!(out.at(#segment, |out| #statics(#variable, out));)
            }
        });
        quote!(#path { #(#pattern)* } => { out.note(&::core::format_args!(#tag)); #(#notes)* })
    }
}

/// The name of a field in a path.
fn segment(member: &Member) -> String {
    match member {
        Member::Named(name) => name.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// A function of a trait, written where the type is: a field whose type lacks the trait is what the error points at.
fn at(ty: &Type, of: TokenStream, function: TokenStream) -> TokenStream {
    quote_spanned!(ty.span().resolved_at(Span::call_site())=> <#ty as #of>::#function)
}
