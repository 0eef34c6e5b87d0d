//! The attribute `#[kernel]` of [offload-device](https://docs.rs/offload-device), which re-exports it.
//!
//! The macro parses only what it needs of a function, without syn: attributes, visibility, name and arguments. The tokens of
//! the user, with their places in the source, reach the compiler unchanged.

mod expand;
mod parse;
mod syntax_error;
mod template;

use proc_macro::TokenStream;

/// Makes a function a GPU kernel: `#[kernel]` or `#[kernel(threads = N)]`.
///
/// `threads` is the maximum number of work-items in a workgroup, an integer literal from 1 to 1024. Compilers use it to
/// allocate registers.
///
/// ```text
/// /// y = a x + y
/// #[kernel(threads = 256)]
/// pub fn saxpy(item: &Item, a: f32, x: &[f32], y: Global<f32>) {
///     let i = item.global_index();
///     if i < y.len() {
///         y.set(item, a * x[i] + y.get(item));
///     }
/// }
/// ```
///
/// # Dependency
/// The package of the kernel must depend on `offload-device` under that name: the expansion contains paths such as
/// `::offload_device::Item`. A dependency with `package = "offload-device"` and another name, or a crate that re-exports the
/// attribute, does not suffice, but `extern crate other_name as offload_device;` in the root of the crate does.
///
/// # Function
/// The first argument is `item: &Item` or `item: &Item<S>`, with the type `S` of the shared memory, or `item: &Item<S, 1>` or
/// `item: &Item<S, 2>` for grids of one or two dimensions. The types of the others
/// implement `Argument`. The function returns nothing and has no type parameters or lifetimes. It is an item of a module: an
/// item of a function or an associated function does not compile.
///
/// # Expansion for the CPU
/// The function stays as it is. A module of the same name and visibility has
///
/// | item | meaning |
/// |---|---|
/// | `const NAME: &str` | name of the kernel |
/// | `const ARGUMENTS: &[Layout]` | layouts of the scalars that are passed |
/// | `const SHARED: usize` | bytes of shared memory |
/// | `const THREADS: Option<u32>` | maximum number of work-items in a workgroup |
/// | `const DIMENSIONS: usize` | dimensions in which the grid may have more than one work-item |
/// | `fn run(grid: Grid, …)` | runs the kernel on the CPU with the arguments after `item` |
/// | `fn launch(module: &Module, grid: Grid, …) -> Result<(), Error>` | launches the kernel on a GPU, with `&Buffer<T>` for `&[T]` and `&mut Buffer<T>` for `Global<T>`; only with the feature `gpu` of offload-device |
///
/// `#[deprecated]` of the function applies to `run` and `launch`, too, and its `#[allow(…)]` and `#[expect(…)]` to the whole expansion.
///
/// A crate with `#![forbid(unsafe_code)]` can contain safe kernels: the only unsafe code of the expansion is a call in
/// `launch`, to which lints of the user's crate do not apply. For `dead_code`, `unused` and `warnings` use `deny`, not `forbid`: the
/// expansion must allow `dead_code` for private kernels. So must it `deprecated` for a kernel with `#[deprecated]`.
///
/// # Expansion for GPUs
/// The function becomes an entry `extern "gpu-kernel"` with the same name, whose arguments are scalars and raw pointers. Its
/// body is an inner function with the user's code. The entry contains unsafe code; `#![forbid(unsafe_code)]` of the user's crate
/// does not apply to it, because it comes from a macro of another crate.
/// A kernel therefore cannot call a kernel: put common code in functions
/// without the attribute.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let parsed = parse::threads(arguments)
        .and_then(|threads| Ok((parse::kernel(function.clone())?, threads)));
    match parsed {
        Ok((kernel, threads)) => expand::expand(&kernel, threads),
        Err(error) => {
            let mut tokens = error.to_tokens();
            // Keeps the names of a function that is valid without the attribute.
            if !error.invalid_function {
                tokens.extend(function);
            }
            tokens
        }
    }
}
