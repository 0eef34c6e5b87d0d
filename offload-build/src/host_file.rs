//! The Rust file that a crate includes: its images, its kernels, and whether they were built.

mod kernels;

use crate::container::kernels::{Argument, Kernel};
use crate::skipped::{self, Skipped};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// What `$OUT_DIR/<module>.rs` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostFile {
    pub(crate) module: String,
    /// Names of kernels and globals, as the runtime knows them, sorted.
    pub(crate) kernels: Vec<String>,
    /// What images say of those kernels that the program starts itself.
    pub(crate) described: Vec<Described>,
    /// Targets without an image.
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) content: Content,
}

/// A kernel, and what the image of each target says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) images: Vec<(String, Kernel)>,
    /// Where there is host code.
    pub(crate) stub: Option<Stub>,
}

/// Where a program has what stands for a kernel on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stub {
    /// In the kernel's offload entry.
    Entry {
        symbol: String,
        /// The entry's size, in words of eight bytes.
        words: usize,
        /// Which of them is the address.
        address: usize,
    },
    /// It is this function.
    Function { symbol: String },
}

/// Where the images are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// In the static library of this module, under these symbols.
    Linked {
        anchor: String,
        /// Symbol and size of all images in their container.
        container: (String, u64),
        images: Vec<Image>,
    },
    /// In the hands of `offload-link`, which has yet to link them.
    Deferred { anchor: String, images: Vec<Image> },
    /// In the static library of this module, where another compiler has put them: nothing has their bytes.
    Kept { anchor: String, images: Vec<Image> },
    /// In a file, which Rust includes.
    Included {
        /// Below `OUT_DIR`.
        file: String,
        /// In bytes.
        size: u64,
        /// Whether the file is something that a runtime loads, or just images.
        is_container: bool,
        images: Vec<Image>,
    },
    /// Nowhere, for this reason.
    NotBuilt(String),
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) target: String,
    pub(crate) kind: &'static str,
    pub(crate) compiler: String,
    pub(crate) place: Place,
}

/// Where the bytes of an image are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind a symbol of the library, so many.
    Symbol(String, u64),
    /// In the included file.
    Part(Range<u64>),
    /// Not linked yet, or packed so that nothing has them by themselves.
    Nowhere,
}

const TYPES: &str = r#"
/// One device image of this module.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// The target, as Cargo.toml spells it.
    pub target: &'static str,
    /// `object` (ELF), `bitcode` or `ptx`.
    pub kind: &'static str,
    /// The image as the runtime loads it, PTX with its NUL unless it is in an offload binary; empty where the last link makes it, or the container is compressed.
    pub bytes: &'static [u8],
    /// The compiler that made it.
    pub compiler: &'static str,
}

/// Why there is no image.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotBuilt {
    /// What was missing when this crate was built.
    pub reason: &'static str,
}

impl ::core::fmt::Display for NotBuilt {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::write!(f, "device code was not built: {}", self.reason)
    }
}

impl ::core::error::Error for NotBuilt {}

/// A kernel that the program starts. Sizes and offsets are in bytes.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// As the runtime looks it up.
    pub name: &'static str,
    /// What it takes, in order; nothing where the last link makes the images.
    pub arguments: &'static [Argument],
    /// What each image that has it says of it; nothing where the last link makes the images.
    pub images: &'static [KernelImage],
    stub: fn() -> ::core::option::Option<*const ::core::ffi::c_void>,
}

impl Kernel {
    /// What stands for it on the host, which `hipLaunchKernel` and `cudaLaunchKernel` take; nothing in modules
    /// without host code, whose kernels the program loads.
    #[allow(dead_code)]
    #[must_use]
    pub fn stub(&self) -> ::core::option::Option<*const ::core::ffi::c_void> {
        (self.stub)()
    }
}

/// An argument of a kernel.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// In the buffer of arguments.
    pub offset: u32,
    /// Its own size.
    pub size: u32,
}

/// A kernel in the image for one target.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// The target, as Cargo.toml spells it.
    pub target: &'static str,
    /// Of the buffer of arguments, with what the runtime adds.
    pub arguments_size: u32,
    /// Threads of a workgroup (block) at most, where the image says.
    pub max_threads: Option<u32>,
    /// The one size of a workgroup (block) that it may be started with, where the source says.
    pub required_threads: Option<[u32; 3]>,
    /// Of a workgroup's memory that is laid out when it is compiled; of NVIDIA's from `sm_90` on with the
    /// 1024 bytes that are the system's, of PTX without.
    pub shared_size: u32,
    /// Of each thread's own memory.
    pub private_size: u32,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// AMD's scalar registers of a wavefront.
    pub scalar_registers: Option<u32>,
    /// Threads of a wavefront (warp).
    pub wavefront: Option<u32>,
}
"#;

const ACCESSORS: &str = r"
/// All images of this module in their container, as the manifest's `container` says.
///
/// # Errors
///
/// When this crate was built without device code, or leaves its linking to the last link.
#[allow(dead_code)]
pub fn image() -> ::core::result::Result<&'static [u8], NotBuilt> {
    linked::image()
}

/// The images of this module, in the order of `targets`.
#[allow(dead_code)]
pub fn images() -> &'static [Image] {
    linked::images()
}

/// The kernel of that name, which `kernel` has as a constant too; nothing in a build without device code.
#[allow(dead_code)]
#[must_use]
pub fn find_kernel(name: &str) -> Option<&'static Kernel> {
    kernel::ALL.iter().find(|kernel| kernel.name == name)
}
";

impl fmt::Display for HostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "// Generated by offload-build {} for module `{}` of [package.metadata.offload].",
            env!("CARGO_PKG_VERSION"),
            self.module
        )?;
        f.write_str(TYPES)?;
        writeln!(
            f,
            "\n/// Kernels, and globals that the host registers, as the runtime knows them."
        )?;
        writeln!(
            f,
            "#[allow(dead_code)]\npub const KERNELS: &[&str] = &{:?};",
            self.kernels
        )?;
        f.write_str(ACCESSORS)?;
        f.write_str(&skipped::rust(&self.skipped))?;
        self.write_kernels(f)?;
        // What the one state of the build does not need, another does.
        let lints = "unsafe_code, dead_code, clippy::unnecessary_wraps";
        writeln!(f, "\n#[allow({lints})]\nmod linked {{")?;
        let mut body = String::new();
        self.content.write(&mut body)?;
        kernels::write_stubs(&self.described, &mut body)?;
        body.lines().try_for_each(|line| match line {
            "" => writeln!(f),
            line => writeln!(f, "    {line}"),
        })?;
        writeln!(f, "}}")
    }
}

impl Content {
    fn write(&self, out: &mut String) -> fmt::Result {
        let (declarations, image, images) = match self {
            Self::Linked {
                anchor,
                container: (symbol, size),
                images,
            } => {
                let mut statics = format!("    static {symbol}: [u8; {size}];\n");
                for image in images {
                    if let Place::Symbol(symbol, size) = &image.place {
                        writeln!(statics, "    static {symbol}: [u8; {size}];")?;
                    }
                }
                // The call is what pulls the object out of a static library.
                let image =
                    format!("unsafe {{\n        {anchor}();\n        Ok(&{symbol})\n    }}");
                (
                    format!("unsafe extern \"C\" {{\n    fn {anchor}();\n{statics}}}\n"),
                    image,
                    images,
                )
            }
            Self::Deferred { anchor, images } | Self::Kept { anchor, images } => {
                let reason = match self {
                    Self::Kept { .. } => "nvcc has the images for itself",
                    _ => "the images are linked by offload-link, with those of other crates",
                };
                let image = format!(
                    "unsafe {{ {anchor}() }}\n    Err(super::NotBuilt {{ reason: {reason:?} }})"
                );
                (
                    format!("unsafe extern \"C\" {{\n    fn {anchor}();\n}}\n"),
                    image,
                    images,
                )
            }
            Self::Included {
                file,
                size,
                is_container,
                images,
            } => {
                let declarations = format!(
                    "/// Where runtimes map images in place, pages begin.\n\
                     #[repr(C, align(4096))]\nstruct Aligned([u8; {size}]);\n\
                     static FILE: Aligned = Aligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\")));\n\n\
                     const fn part(start: usize, end: usize) -> &'static [u8] {{\n    \
                     FILE.0.split_at(end).0.split_at(start).1\n}}\n"
                );
                let image = match (is_container, images.as_slice()) {
                    (true, _) => "Ok(&FILE.0)",
                    (false, [_]) => "Ok(IMAGES[0].bytes)",
                    (false, _) => {
                        "Err(super::NotBuilt { reason: \"the images are in no container: `images` has each\" })"
                    }
                };
                (declarations, image.to_owned(), images)
            }
            Self::NotBuilt(reason) => (
                String::new(),
                format!("Err(super::NotBuilt {{ reason: {reason:?} }})"),
                &Vec::new(),
            ),
        };
        writeln!(out, "{declarations}")?;
        writeln!(
            out,
            "#[inline(never)]\npub(super) fn image() -> Result<&'static [u8], super::NotBuilt> {{\n    {image}\n}}\n"
        )?;
        writeln!(out, "static IMAGES: [super::Image; {}] = [", images.len())?;
        for Image {
            target,
            kind,
            compiler,
            place,
        } in images
        {
            let bytes = match place {
                Place::Nowhere => "&[]".to_owned(),
                Place::Symbol(symbol, _) => format!("unsafe {{ &{symbol} }}"),
                Place::Part(range) => format!("part({}, {})", range.start, range.end),
            };
            let fields = format!(
                "target: {target:?}, kind: {kind:?}, bytes: {bytes}, compiler: {compiler:?}"
            );
            writeln!(out, "    super::Image {{ {fields} }},")?;
        }
        writeln!(out, "];\n")?;
        let pull = match self {
            Self::Linked { anchor, .. }
            | Self::Deferred { anchor, .. }
            | Self::Kept { anchor, .. } => {
                format!("    unsafe {{ {anchor}() }}\n")
            }
            Self::Included { .. } | Self::NotBuilt(_) => String::new(),
        };
        writeln!(
            out,
            "#[inline(never)]\npub(super) fn images() -> &'static [super::Image] {{\n{pull}    &IMAGES\n}}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn image(symbol: &str) -> Image {
        Image {
            target: "gfx90a:xnack-".into(),
            kind: "object",
            compiler: "clang \"19\"".into(),
            place: match symbol {
                "" => Place::Nowhere,
                symbol => Place::Symbol(symbol.into(), 3),
            },
        }
    }

    /// Compiles the file as a crate of `edition` includes it, warnings denied, and runs `main`.
    fn run(name: &str, edition: &str, content: Content, extra: &str, main: &str) -> String {
        let file = HostFile {
            module: "kernels".into(),
            kernels: vec!["k".into()],
            described: Vec::new(),
            skipped: Vec::new(),
            content,
        };
        run_file(name, edition, &file, extra, main)
    }

    fn run_file(name: &str, edition: &str, file: &HostFile, extra: &str, main: &str) -> String {
        let folder = std::env::temp_dir().join(format!(
            "offload-host-file-{name}-{edition}-{}",
            std::process::id()
        ));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("kernels.rs"), file.to_string()).unwrap();
        std::fs::write(folder.join("images"), [9, 1, 2]).unwrap();
        let program = format!(
            "mod kernels {{ include!(\"kernels.rs\"); }}\n{extra}\nfn main() {{ {main} }}\n"
        );
        std::fs::write(folder.join("main.rs"), program).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let built = Command::new(rustc)
            .args([
                "-Dwarnings",
                "-Dunsafe_code",
                "--edition",
                edition,
                "main.rs",
                "-o",
                "main",
            ])
            .env("OUT_DIR", &folder)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let output = Command::new(folder.join("main")).output().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn compiles_without_images_in_every_edition() {
        for edition in ["2021", "2024"] {
            let content = Content::NotBuilt("no \"clang\"".into());
            let main =
                "println!(\"{} {}\", kernels::image().unwrap_err(), kernels::images().len());";
            let printed = run("stub", edition, content, "", main);
            assert_eq!(printed, "device code was not built: no \"clang\" 0\n");
        }
    }

    #[test]
    fn gives_the_bytes_behind_the_symbols() {
        for edition in ["2021", "2024"] {
            let content = Content::Linked {
                anchor: "k_anchor".into(),
                container: ("k_container".into(), 4),
                images: vec![image("k_image_0")],
            };
            // What the module's static library defines.
            let library = "#[allow(unsafe_code)] mod library { \
                 #[unsafe(no_mangle)] extern \"C\" fn k_anchor() { println!(\"anchor\") } \
                 #[unsafe(no_mangle)] #[allow(non_upper_case_globals)] static k_container: [u8; 4] = [9, 1, 2, 3]; \
                 #[unsafe(no_mangle)] #[allow(non_upper_case_globals)] static k_image_0: [u8; 3] = [1, 2, 3]; }";
            let main = "println!(\"{:?}\", kernels::image()); let i = kernels::images()[0]; \
                        println!(\"{} {} {:?} {} {:?}\", i.target, i.kind, i.bytes, i.compiler, kernels::KERNELS);";
            let printed = run("linked", edition, content, library, main);
            let image = "gfx90a:xnack- object [1, 2, 3] clang \"19\" [\"k\"]";
            assert_eq!(
                printed,
                format!("anchor\nOk([9, 1, 2, 3])\nanchor\n{image}\n")
            );
        }
    }

    #[test]
    fn gives_the_parts_of_an_included_file() {
        let part = |target: &str, range| Image {
            target: target.into(),
            kind: "object",
            compiler: "clang".into(),
            place: Place::Part(range),
        };
        let main = "match kernels::image() { Ok(image) => println!(\"{image:?} {}\", image.as_ptr() as usize % 4096), \
                    Err(error) => println!(\"{error}\") } \
                    for i in kernels::images() { println!(\"{} {:?}\", i.target, i.bytes); }";
        for (is_container, first, expected) in [
            (true, 1..2, "[9, 1, 2] 0\na [1]\nb [2]\n"),
            (
                false,
                1..3,
                "device code was not built: the images are in no container: `images` has each\na [1, 2]\nb [2]\n",
            ),
        ] {
            let content = Content::Included {
                file: "images".into(),
                size: 3,
                is_container,
                images: vec![part("a", first), part("b", 2..3)],
            };
            assert_eq!(run("included", "2021", content, "", main), expected);
        }
    }

    #[test]
    fn has_a_constant_for_each_kernel_that_has_a_name_in_rust() {
        let described = |name: &str| Described {
            name: name.into(),
            arguments: vec![
                Argument { offset: 0, size: 8 },
                Argument { offset: 8, size: 4 },
            ],
            images: vec![
                (
                    "gfx90a".into(),
                    Kernel {
                        arguments_size: 16,
                        max_threads: Some(256),
                        required_threads: Some([8, 8, 4]),
                        ..Kernel::default()
                    },
                ),
                ("gfx942".into(), Kernel::default()),
            ],
            stub: None,
        };
        let names = ["_Z5scalePf", "match", "self", "a.b", "ALL", "scale"];
        let file = HostFile {
            module: "kernels".into(),
            kernels: Vec::new(),
            described: names.map(described).into(),
            skipped: Vec::new(),
            content: Content::NotBuilt("no".into()),
        };
        let main = "let k = kernels::kernel::scale; println!(\"{} {} {}\", k.name, k.arguments[1].offset, k.arguments[1].size); \
                    println!(\"{:?} {:?}\", k.images[0].required_threads, k.images[1]); \
                    println!(\"{} {}\", kernels::kernel::_Z5scalePf.name, kernels::kernel::r#match.name); \
                    for k in kernels::kernel::ALL { print!(\"{} \", kernels::find_kernel(k.name).unwrap().name); } \
                    println!(\"{}\", kernels::find_kernel(\"none\").is_none());";
        for edition in ["2021", "2024"] {
            let printed = run_file("kernels", edition, &file, "", main);
            let expected = "scale 8 4\nSome([8, 8, 4]) KernelImage { target: \"gfx942\", arguments_size: 0, \
                max_threads: None, required_threads: None, shared_size: 0, private_size: 0, registers: None, \
                scalar_registers: None, wavefront: None }\n_Z5scalePf match\n_Z5scalePf match self a.b ALL scale true\n";
            assert_eq!(printed, expected);
        }
    }

    #[test]
    fn says_that_images_are_linked_later() {
        let images = vec![image("")];
        let content = Content::Deferred {
            anchor: "k_anchor".into(),
            images,
        };
        let library = "#[allow(unsafe_code)] mod library { #[unsafe(no_mangle)] extern \"C\" fn k_anchor() {} }";
        let main = "println!(\"{} {:?}\", kernels::image().is_err(), kernels::images()[0].bytes);";
        assert_eq!(run("deferred", "2024", content, library, main), "true []\n");
    }
}
