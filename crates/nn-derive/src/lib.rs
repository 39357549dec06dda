//! `#[derive(Module)]`: what a struct owns, read off its fields.

#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Member, Path, Result, Type};

/// Makes a struct a module: its parameters, buffers, modules and lists of them become members,
/// under the names of the fields.
///
/// - `#[module(skip)]` leaves a field out that is none of these and no plain value either;
/// - `#[module(name = "0.conv")]` gives a member another name than its field;
/// - `#[module(crate = path)]` on the struct says where the `nn` crate is, if it was renamed.
///
/// A field of type `Hooks` makes the module one that can be hooked.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "Module can be derived for structs only"));
    };
    let nn = match Attributes::parse(&input.attrs)?.krate {
        Some(path) => quote!(#path),
        None => home(),
    };
    let (joins, types) = joins(&nn, &data.fields)?;
    let hooks = data.fields.members().zip(&data.fields).find(|(_, field)| is_hooks(&field.ty));
    let hooks = hooks.map(|(member, _)| {
        quote! {
            fn hooks(&self) -> ::core::option::Option<&#nn::Hooks> {
                ::core::option::Option::Some(&self.#member)
            }
        }
    });
    let ident = &input.ident;
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    let conditions = if input.generics.params.is_empty() {
        quote!(#conditions)
    } else {
        let given = conditions.map(|clause| clause.predicates.iter()).into_iter().flatten();
        quote!(where #(#given,)* #(#types: #nn::Member,)* Self: ::core::marker::Send + ::core::marker::Sync + 'static)
    };
    Ok(quote! {
        #[automatically_derived]
        impl #generics #nn::Module for #ident #arguments #conditions {
            fn members<'members>(&'members self, members: &mut #nn::Members<'members>) {
                #(#joins)*
                let _ = members;
            }

            #hooks
        }
    })
}

/// Where the `nn` crate is for the crate that is being compiled: it depends on it, or on all of
/// Cresset.
fn home() -> TokenStream {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    match std::fs::read_to_string(format!("{folder}/Cargo.toml")) {
        Ok(manifest) if !manifest.contains("cresset-nn") => quote!(::cresset::nn),
        _ => quote!(::cresset_nn),
    }
}

/// A statement per member, and its type.
fn joins(nn: &TokenStream, fields: &Fields) -> Result<(Vec<TokenStream>, Vec<Type>)> {
    let (mut joins, mut types) = (Vec::new(), Vec::new());
    for (member, field) in fields.members().zip(fields) {
        let attributes = Attributes::parse(&field.attrs)?;
        if attributes.skip {
            continue;
        }
        let name = attributes.name.unwrap_or_else(|| name_of(&member, field));
        joins.push(quote!(#nn::Member::join(&self.#member, #name, members);));
        types.push(field.ty.clone());
    }
    Ok((joins, types))
}

fn name_of(member: &Member, field: &Field) -> String {
    match (member, &field.ident) {
        (_, Some(ident)) => Ident::unraw(ident).to_string(),
        (Member::Unnamed(index), None) => index.index.to_string(),
        (Member::Named(ident), None) => ident.to_string(),
    }
}

fn is_hooks(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Hooks"))
}

#[derive(Default)]
struct Attributes {
    skip: bool,
    name: Option<String>,
    krate: Option<Path>,
}

impl Attributes {
    fn parse(list: &[Attribute]) -> Result<Attributes> {
        let mut attributes = Attributes::default();
        for attribute in list.iter().filter(|attribute| attribute.path().is_ident("module")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    attributes.skip = true;
                } else if meta.path.is_ident("name") {
                    attributes.name = Some(meta.value()?.parse::<LitStr>()?.value());
                } else if meta.path.is_ident("crate") {
                    attributes.krate = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error("expected `skip`, `name = \"…\"` or `crate = path`"));
                }
                Ok(())
            })?;
        }
        Ok(attributes)
    }
}
