//! Expands a kernel for the CPU and for GPUs.

use proc_macro::{Group, Ident, Literal, Span, TokenStream, TokenTree};

use crate::parse::{Kernel, Parameter};
use crate::template::{fill, fill_across, fill_at};

/// Returns the items that a kernel becomes. Macros of offload-device keep those of the device.
pub(crate) fn expand(kernel: &Kernel, threads: Option<u32>) -> TokenStream {
    let mut items = fill(
        "::offload_device::__cpu! { $items }",
        &[("items", cpu(kernel, threads))],
    );
    items.extend(fill(
        "::offload_device::__gpu! { $items }",
        &[("items", gpu(kernel, threads))],
    ));
    items
}

/// Returns the function and its module.
///
/// The types of the arguments are those of the function's scope, so that the constants and `run` are items beside the
/// function, which the module exports.
fn cpu(kernel: &Kernel, threads: Option<u32>) -> TokenStream {
    let name = plain_name(kernel);
    let hidden = |prefix: &str| {
        TokenStream::from(TokenTree::from(Ident::new(
            &format!("{prefix}{name}"),
            Span::mixed_site(),
        )))
    };
    let values = [
        ("function", kernel.function.clone()),
        ("visibility", kernel.visibility.clone()),
        ("inner_visibility", inner_visibility(&kernel.visibility)),
        ("name", ident(&kernel.name)),
        ("text", string(&name)),
        ("description", hidden("__OFFLOAD_KERNEL_")),
        ("run", hidden("__offload_run_")),
        ("launch", hidden("__offload_launch_")),
        (
            "module_doc",
            string(&format!("Kernel `{name}`: description and launches.")),
        ),
        ("allow", allow(kernel)),
        ("allow_long", allow_long(kernel)),
        ("deprecated", deprecated(kernel)),
        ("threads", optional(threads)),
        (
            "layouts",
            each(
                kernel,
                "::offload_device::__private::ArgumentType::<$type>::LAYOUTS[0],
                ::offload_device::__private::ArgumentType::<$type>::LAYOUTS[1],",
            ),
        ),
        ("signature", signature(kernel, threads)),
        ("parameters", each(kernel, "$name: $type,")),
        (
            "launch_parameters",
            each(
                kernel,
                "$name: <$type as ::offload_device::gpu::LaunchArgument>::Host,",
            ),
        ),
        (
            "appends",
            each(
                kernel,
                "::offload_device::gpu::HostArgument::append($name, arguments);",
            ),
        ),
        (
            "values",
            nested(kernel, "::offload_device::cpu::Given($name).pass($others)"),
        ),
        (
            "checked",
            each(
                kernel,
                "let _ = ::offload_device::Layout::of::<<$type as ::offload_device::Argument>::First>();",
            ),
        ),
        ("pattern", nested(kernel, "($name, $others)")),
        (
            "call",
            fill_at(
                place(&kernel.item),
                "self::$kernel(item, $names)",
                &[
                    ("kernel", ident(&kernel.name)),
                    ("names", each(kernel, "$name,")),
                ],
            ),
        ),
    ];
    fill(CPU, &values)
}

/// Returns the brackets of the kernel's attributes of a name.
fn attributes(kernel: &Kernel, name: &str) -> Vec<TokenStream> {
    let brackets = kernel.attributes.clone().into_iter();
    let brackets = brackets.filter_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    });
    let has_name = |attribute: &TokenStream| {
        let first = attribute.clone().into_iter().next();
        first.is_some_and(|first| first.to_string() == name)
    };
    brackets.filter(has_name).collect()
}

/// Returns the kernel's `deprecated`, for functions that call it.
fn deprecated(kernel: &Kernel) -> TokenStream {
    let all = attributes(kernel, "deprecated").into_iter();
    let all = all.map(|attribute| fill("#[$attribute]", &[("attribute", attribute)]));
    all.collect()
}

/// Returns attributes for what has the kernel's name or calls it: lints that the kernel allows or expects do not apply there, and
/// neither does that of its own deprecation.
fn allow(kernel: &Kernel) -> TokenStream {
    let lints = ["allow", "expect"].map(|name| attributes(kernel, name));
    let lints = lints.into_iter().flatten().map(|attribute| {
        let lints = attribute.into_iter().skip(1).collect();
        fill("#[allow $lints]", &[("lints", lints)])
    });
    let own = attributes(kernel, "deprecated");
    let own = own.iter().map(|_| fill("#[allow(deprecated)]", &[]));
    lints.chain(own).collect()
}

/// Returns the attributes for the kernel's body on a GPU, which has another name: a lint that the kernel expects may not occur.
fn inner_attributes(kernel: &Kernel) -> TokenStream {
    let all = kernel.attributes.clone().into_iter().map(|token| {
        let TokenTree::Group(group) = &token else {
            return token;
        };
        let mut words = group.stream().into_iter();
        match words.next() {
            Some(first) if first.to_string() == "expect" => {
                let allow = TokenTree::from(Ident::new("allow", first.span()));
                let words = std::iter::once(allow).chain(words).collect();
                Group::new(group.delimiter(), words).into()
            }
            _ => token,
        }
    });
    all.collect()
}

/// Returns an attribute for `run` and `launch`, if one of them has more than 7 arguments: it is an error under `forbid` of the lint.
fn allow_long(kernel: &Kernel) -> TokenStream {
    match kernel.others.len() + 2 > 7 {
        true => fill("#[allow(clippy::too_many_arguments)]", &[]),
        false => TokenStream::new(),
    }
}

/// The function and its module.
///
/// Most lints do not apply to code of a macro, so that it needs no `allow`, which is an error under `forbid`. Without that of `run`,
/// rustc 1.85 reports private kernels as dead code.
const CPU: &str = "$function

#[doc(hidden)]
$allow
$visibility const $description: ::offload_device::__private::Description = {
    use ::offload_device::__private::InvalidType as _;
    const __OFFLOAD_ALL: &[::offload_device::Layout] = &[$layouts];
    const __OFFLOAD_SIGNATURE: ::offload_device::__private::Signature<'static> = $signature;
    ::offload_device::__private::Description {
        name: $text,
        arguments: &::offload_device::__private::present_arguments::<
            { ::offload_device::__private::arguments_len(__OFFLOAD_ALL) },
        >(__OFFLOAD_ALL),
        shared: __OFFLOAD_SIGNATURE.shared,
        threads: __OFFLOAD_SIGNATURE.threads,
        dimensions: __OFFLOAD_SIGNATURE.dimensions,
        signature: &__OFFLOAD_SIGNATURE.text::<{ __OFFLOAD_SIGNATURE.text_len() }>(),
    }
};

/// Runs the kernel on the CPU and returns after its last work-item.
///
/// Panics if a work-item panics, if work-items of a workgroup do not reach the same barrier, and if the grid is too
/// large; see `offload_device::cpu`.
#[doc(hidden)]
#[allow(dead_code)]
$allow
$allow_long
$deprecated
#[track_caller]
$visibility fn $run(grid: ::offload_device::cpu::Grid, $parameters) {
    use ::offload_device::cpu::InvalidArgument as _;
    ::offload_device::cpu::run_kernel(&$description, grid, $values, |item, $pattern| $call);
}

$allow
const _: () = ::offload_device::__private::check_place(&self::$run, &$run);

::offload_device::__launch! { {
    /// Launches the kernel on a GPU, on the stream of the module, and returns before it has run.
    ///
    /// An argument `&[T]` comes as `&Buffer<T>`, and a `Global<T>` as `&mut Buffer<T>`; see `offload_device::gpu`.
    ///
    /// # Errors
    /// If a buffer belongs to another stream, the grid is too large, the module has no such kernel or one with another
    /// signature, or the API refuses the launch. Errors of the running kernel are those of a later call.
    #[doc(hidden)]
    $allow
    $allow_long
    $deprecated
    $visibility fn $launch(
        module: &::offload_device::gpu::Module,
        grid: ::offload_device::Grid,
        $launch_parameters
    ) -> ::core::result::Result<(), ::offload_device::gpu::Error> {
        // The description and the types are those of this kernel.
        unsafe {
            ::offload_device::gpu::launch(&$description, module, grid, |arguments| { $appends })
        }
    }
} {
    $allow
    const _: () = { $checked };
} }

#[doc = $module_doc]
$allow
$visibility mod $name {
    /// Name of the kernel.
    pub const NAME: &str = $text;
    /// Layouts of the scalars that are passed to the kernel.
    pub const ARGUMENTS: &[::offload_device::Layout] = super::$description.arguments;
    /// Bytes of memory that a workgroup shares.
    pub const SHARED: usize = super::$description.shared;
    /// Maximum number of work-items in a workgroup.
    pub const THREADS: ::core::option::Option<u32> = $threads;
    /// Dimensions in which the grid may have more than one work-item.
    pub const DIMENSIONS: usize = super::$description.dimensions;
    #[doc(inline)]
    $inner_visibility use super::$run as run;
    ::offload_device::__launch! { {
        #[doc(inline)]
        $inner_visibility use super::$launch as launch;
    } {} }
}";

/// Returns the expression of an optional number.
fn optional(value: Option<u32>) -> TokenStream {
    match value {
        None => fill("::core::option::Option::None", &[]),
        Some(value) => fill("::core::option::Option::Some($n)", &[("n", number(value))]),
    }
}

/// Returns a constant expression: the dimensions that the type of the item has.
fn dimensions(kernel: &Kernel) -> TokenStream {
    fill_at(
        place(&kernel.item),
        "::offload_device::__private::dimensions::<$item>()",
        &[("item", kernel.item.clone())],
    )
}

/// Returns a constant expression: checks the type of the shared memory and gives its size.
fn shared_size(kernel: &Kernel) -> TokenStream {
    fill_at(
        place(&kernel.item),
        "{
            ::core::assert!(
                ::offload_device::__private::is_shared_aligned::<$item>(),
                \"the type of shared memory must have an alignment of at most 16\",
            );
            ::core::assert!(
                ::offload_device::__private::is_shared_plain::<$item>(),
                \"the type of shared memory must not need to be dropped\",
            );
            ::offload_device::__private::shared_size::<$item>()
        }",
        &[("item", kernel.item.clone())],
    )
}

/// Returns the entry. Its parameters are scalars and raw pointers only; `()` is not passed.
///
/// The functions in it hide those of the user's crate that have the same names: only local variables of a macro are apart.
fn gpu(kernel: &Kernel, threads: Option<u32>) -> TokenStream {
    let name = plain_name(kernel);
    let symbol = format!("__offload_signature${name}");
    // The build reads the limit from the name of this function, and links in an empty one.
    let limit = threads.map_or_else(TokenStream::new, |threads| {
        let symbol = string(&format!("__offload_threads${name}${threads}$"));
        let declared =
            "unsafe extern \"C\" { #[link_name = $symbol] safe fn __offload_threads(); } __offload_threads();";
        fill(declared, &[("symbol", symbol)])
    });
    let values = [
        ("attributes", inner_attributes(kernel)),
        ("visibility", kernel.visibility.clone()),
        ("doc", string(&format!("Kernel `{name}`."))),
        ("allow", allow(kernel)),
        ("name", ident(&kernel.name)),
        ("raw", scalars(kernel)),
        (
            "body_parameters",
            TokenTree::from(kernel.parameters.clone()).into(),
        ),
        ("body_block", TokenTree::from(kernel.body.clone()).into()),
        ("limit", limit),
        ("joined", joined(kernel)),
        ("symbol", string(&symbol)),
        ("signature", signature(kernel, threads)),
    ];
    fill(
        "$allow
        const _: () = {
            use ::offload_device::__private::InvalidType as _;
            const __OFFLOAD_SIGNATURE: ::offload_device::__private::Signature<'static> = $signature;
            #[unsafe(export_name = $symbol)]
            static __OFFLOAD_TEXT: [u8; __OFFLOAD_SIGNATURE.text_len()] = __OFFLOAD_SIGNATURE.text();
        };

        #[unsafe(no_mangle)]
        #[doc = $doc]
        $allow
        $visibility unsafe extern \"gpu-kernel\" fn $name($raw) {
            $attributes
            #[inline(always)]
            fn __offload_body $body_parameters $body_block
            $limit
            let item = unsafe { ::offload_device::Item::new(::offload_device::__private::State::current()) };
            let () = __offload_body(&item, $joined);
        }",
        &values,
    )
}

/// Returns a constant expression: the signature of the kernel, the same for the CPU and for GPUs.
fn signature(kernel: &Kernel, threads: Option<u32>) -> TokenStream {
    let kinds = "::offload_device::__private::ArgumentType::<$type>::KIND,";
    let values = [
        ("shared", shared_size(kernel)),
        ("dimensions", dimensions(kernel)),
        ("kinds", each(kernel, kinds)),
        ("threads", optional(threads)),
    ];
    fill(
        "::offload_device::__private::Signature {
            shared: $shared,
            dimensions: $dimensions,
            arguments: &[$kinds],
            threads: $threads,
        }",
        &values,
    )
}

/// Scalars of an argument: the start of their names, and their types in `Argument`.
const SCALARS: [(&str, &str); 2] = [("first", "First"), ("second", "Second")];

/// Returns the parameters of the entry, two for each argument. All of them and [`joined`] need an `Argument`: the compiler reports
/// equal errors once, so that each is at the same place, the type.
fn scalars(kernel: &Kernel) -> TokenStream {
    let parameters = kernel.others.iter().enumerate();
    let parameters = parameters.flat_map(|(index, parameter)| {
        SCALARS.map(|(name, kind)| {
            let place = ends(&parameter.kind);
            let pattern = fill_across(
                place,
                "$name @ _",
                &[("name", scalar(name, index, place.1))],
            );
            let kind = format!("<$type as ::offload_device::Argument>::{kind}");
            let kind = fill_across(place, &kind, &[("type", parameter.kind.clone())]);
            fill("$pattern: $type,", &[("pattern", pattern), ("type", kind)])
        })
    });
    parameters.collect()
}

/// Returns the arguments of the body.
fn joined(kernel: &Kernel) -> TokenStream {
    let arguments = kernel.others.iter().enumerate();
    let arguments = arguments.map(|(index, parameter)| {
        let place = ends(&parameter.kind);
        let [first, second] = SCALARS.map(|(name, _)| {
            fill_across(place, "*&$name", &[("name", scalar(name, index, place.1))])
        });
        let join = "::offload_device::Argument::join($first, $second)";
        let join = fill_across(place, join, &[("first", first), ("second", second)]);
        fill("unsafe { $join },", &[("join", join)])
    });
    arguments.collect()
}

/// Returns the name of a scalar, at a place.
fn scalar(name: &str, index: usize, place: Span) -> TokenStream {
    let span = Span::mixed_site().located_at(place);
    ident(&Ident::new(&format!("{name}_{index}"), span))
}

/// Fills a template for each argument after the first. The compiler reports errors of its types at the type.
fn each(kernel: &Kernel, template: &str) -> TokenStream {
    let filled = kernel.others.iter().map(|parameter| {
        let values = [
            ("name", ident(&parameter.name)),
            ("type", parameter.kind.clone()),
        ];
        fill_at(place(&parameter.kind), template, &values)
    });
    filled.collect()
}

/// Returns the place of the first token.
fn place(tokens: &TokenStream) -> Span {
    ends(tokens).0
}

/// Returns the places of the first token and of the last one.
fn ends(tokens: &TokenStream) -> (Span, Span) {
    let mut spans = tokens.clone().into_iter().map(|token| token.span());
    let first = spans.next().unwrap_or_else(Span::call_site);
    (first, spans.last().unwrap_or(first))
}

/// Fills a template for each argument after the first, in which `$others` stands for the arguments after it.
fn nested(kernel: &Kernel, template: &str) -> TokenStream {
    let nest = |others, parameter: &Parameter| {
        let values = [("name", ident(&parameter.name)), ("others", others)];
        fill_at(place(&parameter.kind), template, &values)
    };
    kernel.others.iter().rev().fold(fill("()", &[]), nest)
}

/// Returns the visibility, seen from a module in that of the kernel.
fn inner_visibility(visibility: &TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = visibility.clone().into_iter().collect();
    // The group of a `$visibility:vis`.
    if let [TokenTree::Group(group)] = &tokens[..] {
        tokens = group.stream().into_iter().collect();
    }
    let [_, TokenTree::Group(scope)] = &tokens[..] else {
        return if tokens.is_empty() {
            fill("pub(super)", &[])
        } else {
            tokens.into_iter().collect()
        };
    };
    let scope: Vec<TokenTree> = scope.stream().into_iter().collect();
    let path = if scope[0].to_string() == "in" {
        &scope[1..]
    } else {
        &scope[..]
    };
    let others = |path: &[TokenTree]| path.iter().cloned().collect::<TokenStream>();
    match path.first().map(ToString::to_string).as_deref() {
        Some("self") => fill("pub(in super $others)", &[("others", others(&path[1..]))]),
        Some("super") => fill("pub(in super::$path)", &[("path", others(path))]),
        _ => visibility.clone(),
    }
}

/// Returns the name without the `r#` of a keyword: that is the name of the symbol.
fn plain_name(kernel: &Kernel) -> String {
    let name = kernel.name.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

fn ident(name: &Ident) -> TokenStream {
    TokenTree::from(name.clone()).into()
}

fn string(text: &str) -> TokenStream {
    TokenTree::from(Literal::string(text)).into()
}

fn number(value: u32) -> TokenStream {
    TokenTree::from(Literal::u32_unsuffixed(value)).into()
}
