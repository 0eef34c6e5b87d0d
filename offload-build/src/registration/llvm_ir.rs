//! Registrations as textual LLVM IR, for those who expect a module: `llvm-offload-wrapper`.
//!
//! clang compiles it under the names `.ll` and `.bc`, from LLVM 15 on. What a module says is what
//! the object says that is written here; names of symbols are LLVM's. On COFF the ends of a table
//! are in `$OA` and `$OZ`, as in `clang-linker-wrapper` 22. There is none for Mach-O.

use std::fmt::Write as _;

use super::entries::EntryTable;
use super::fat_binary::{FatBinary, HostTable, Runtime};
use super::openmp::OpenMp;
use super::sycl::Sycl;
use super::{Error, Global, check_name};
use crate::format::offload_entry;
use crate::target::Triple;

/// A module under construction.
struct Module {
    text: String,
    coff: bool,
    /// Global values that nothing refers to and that must stay.
    used: Vec<String>,
}

/// The ends of a table, as constants.
struct Ends {
    first: String,
    last: String,
}

impl OpenMp<'_> {
    /// The registration as a module.
    ///
    /// # Errors
    ///
    /// When an image or a symbol lies outside its blob, or `host` has another object format.
    pub fn to_ir(&self, host: &Triple) -> Result<String, Error> {
        let mut module = Module::new(host)?;
        let ends = module.table(0, &self.table, offload_entry::EntryTable::V21)?;
        let Ends { first, last } = &ends;
        let mut records = Vec::new();
        let mut images = Vec::new();
        for (index, blob) in self.images.iter().enumerate() {
            let (start, end) = blob.checked(index)?;
            let name = match index {
                0 => "@.omp_offloading.device_image".to_owned(),
                _ => format!("@.omp_offloading.device_image.{index}"),
            };
            module.bytes(&name, blob.bytes, self.section.name(), 8);
            let (start, end) = (inside(&name, start), inside(&name, end));
            records.push(format!(
                "{{ ptr, ptr, ptr, ptr }} {{ ptr {start}, ptr {end}, ptr {first}, ptr {last} }}"
            ));
            images.push((name, blob.bytes.len() as u64));
        }
        let count = records.len();
        let records = records.join(",\n  ");
        let text = &mut module.text;
        let _ = writeln!(
            text,
            "@.omp_offloading.device_images = internal unnamed_addr constant \
             [{count} x {{ ptr, ptr, ptr, ptr }}] [\n  {records}\n]\n\
             @.omp_offloading.descriptor = internal constant {{ i32, ptr, ptr, ptr }} \
             {{ i32 {count}, ptr @.omp_offloading.device_images, ptr {first}, ptr {last} }}"
        );
        let function = |name: &str| format!("@.omp_offloading.descriptor_{name}");
        module.hook("ctors", 101, &function("reg"));
        let call = |name: &str| {
            format!("  call void @__tgt_{name}_lib(ptr @.omp_offloading.descriptor)\n")
        };
        let atexit = format!("  call i32 @atexit(ptr {})\n", function("unreg"));
        module.function(&function("reg"), "", &(call("register") + &atexit));
        module.function(&function("unreg"), "", &call("unregister"));
        module.declare("void @__tgt_register_lib(ptr)");
        module.declare("void @__tgt_unregister_lib(ptr)");
        module.declare("i32 @atexit(ptr)");
        module.globals(self.globals, &images)?;
        Ok(module.finish())
    }
}

impl FatBinary<'_> {
    /// The registration as a module.
    ///
    /// # Errors
    ///
    /// When a symbol lies outside the fat binary, or `host` has another object format.
    pub fn to_ir(&self, host: &Triple) -> Result<String, Error> {
        let mut module = Module::new(host)?;
        let name = self.runtime.name();
        let image = "@.fatbin_image".to_owned();
        let content = self.runtime.content(self.bytes);
        let alignment = self.runtime.alignment();
        module.bytes(&image, &content, self.runtime.section(), alignment);
        let _ = writeln!(
            module.text,
            "@.fatbin_wrapper = internal constant {{ i32, i32, ptr, ptr }} \
             {{ i32 {}, i32 1, ptr {image}, ptr null }}, section \"{}\", align 8\n\
             @.{name}.binary_handle = internal global ptr null",
            self.runtime.magic(),
            self.runtime.wrapper_section()
        );
        for symbol in self.symbols.fat_binary {
            check_name(symbol)?;
            let symbol = identifier(symbol);
            let _ = writeln!(module.text, "{symbol} = protected alias i8, ptr {image}");
        }
        for (index, symbol) in self.symbols.handle.iter().enumerate() {
            check_name(symbol)?;
            let symbol = identifier(symbol);
            if index == 0 {
                module.text += "@.hip_gpubin_handle = internal global ptr null, section \
                                \".hip_gpubin_handle\"\n";
            }
            let _ = writeln!(
                module.text,
                "{symbol} = protected alias ptr, ptr @.hip_gpubin_handle"
            );
        }
        let mut walks = String::new();
        for (index, HostTable { layout, table }) in self.tables.iter().enumerate() {
            let ends = module.table(index, table, *layout)?;
            let function = format!("@.{name}.globals_reg.{index}");
            let body = walk(self.runtime, *layout, &ends);
            module.function(&function, "ptr %handle", &body);
            let _ = writeln!(walks, "  call void {function}(ptr %handle)");
        }
        let hip = self.runtime == Runtime::Hip;
        let end = match hip {
            true => String::new(),
            false => format!("  call void @__{name}RegisterFatBinaryEnd(ptr %handle)\n"),
        };
        module.hook("ctors", 101, &format!("@.{name}.fatbin_reg"));
        module.function(
            &format!("@.{name}.fatbin_reg"),
            "",
            &format!(
                "  %handle = call ptr @__{name}RegisterFatBinary(ptr @.fatbin_wrapper)\n  \
                 store ptr %handle, ptr @.{name}.binary_handle\n{walks}{end}  \
                 call i32 @atexit(ptr @.{name}.fatbin_unreg)\n"
            ),
        );
        module.function(
            &format!("@.{name}.fatbin_unreg"),
            "",
            &format!(
                "  %handle = load ptr, ptr @.{name}.binary_handle\n  \
                 call void @__{name}UnregisterFatBinary(ptr %handle)\n"
            ),
        );
        module.declare("i32 @atexit(ptr)");
        let mut declare = |result: &str, function: &str, parameters: &str| {
            module.declare(&format!("{result} @__{name}{function}({parameters})"));
        };
        declare("ptr", "RegisterFatBinary", "ptr");
        declare("void", "UnregisterFatBinary", "ptr");
        if !hip {
            declare("void", "RegisterFatBinaryEnd", "ptr");
        }
        if !self.tables.is_empty() {
            let ten = "ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr";
            declare("i32", "RegisterFunction", ten);
            declare(
                "void",
                "RegisterVar",
                "ptr, ptr, ptr, ptr, i32, i64, i32, i32",
            );
            declare("void", "RegisterManagedVar", "ptr, ptr, ptr, ptr, i64, i32");
            if hip {
                declare("void", "RegisterSurface", "ptr, ptr, ptr, ptr, i32, i32");
                declare(
                    "void",
                    "RegisterTexture",
                    "ptr, ptr, ptr, ptr, i32, i32, i32",
                );
            }
        }
        module.globals(self.globals, &[(image, self.bytes.len() as u64)])?;
        Ok(module.finish())
    }
}

impl Sycl<'_> {
    /// The registration as a module.
    ///
    /// # Errors
    ///
    /// When a kind of image does not fit its byte, a symbol lies outside the images, or `host` has
    /// another object format.
    pub fn to_ir(&self, host: &Triple) -> Result<String, Error> {
        const IMAGE: &str = "{ i16, i8, i8, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }";
        let mut module = Module::new(host)?;
        let mut records = Vec::new();
        let mut images = Vec::new();
        let mut strings = 0_usize;
        for (index, image) in self.images.iter().enumerate() {
            let name = format!("@.sycl_offloading.{index}.data");
            module.bytes(&name, image.bytes, self.section.name(), 8);
            let end = inside(&name, image.bytes.len() as u64);
            let mut string = |module: &mut Module, text: &[u8]| {
                let name = format!("@.sycl_offloading.string.{strings}");
                strings += 1;
                let bytes = [text, b"\0"].concat();
                let (len, text) = (bytes.len(), quoted(&bytes));
                let _ = writeln!(
                    module.text,
                    "{name} = private unnamed_addr constant [{len} x i8] c{text}"
                );
                name
            };
            let mut entries = Vec::new();
            for kernel in image.kernels() {
                let kernel = string(&mut module, kernel);
                entries.push(format!(
                    "{ENTRY} {{ i64 0, i16 1, i16 8, i32 0, ptr null, ptr {kernel}, i64 0, i64 0, ptr null }}"
                ));
            }
            let [triple, compile, link] = [image.triple, image.compile_options, image.link_options]
                .map(|text| string(&mut module, text.as_bytes()));
            let (count, entries) = (entries.len(), entries.join(",\n  "));
            let table = format!("@.sycl_offloading.entries_arr.{index}");
            let _ = writeln!(
                module.text,
                "{table} = internal constant [{count} x {ENTRY}] [\n  {entries}\n]"
            );
            let kind = image.kind.raw();
            let kind = u8::try_from(kind).map_err(|_| Error::ImageKind { index, kind })?;
            records.push(format!(
                "{IMAGE} {{ i16 3, i8 8, i8 {kind}, ptr {triple}, ptr {compile}, ptr {link}, ptr {name}, \
                 ptr {end}, ptr {table}, ptr getelementptr ([{count} x {ENTRY}], ptr {table}, i64 1), \
                 ptr null, ptr null }}"
            ));
            images.push((name, image.bytes.len() as u64));
        }
        let count = u16::try_from(records.len()).map_err(|_| Error::Images {
            count: records.len(),
        })?;
        let records = records.join(",\n  ");
        let _ = writeln!(
            module.text,
            "@.sycl_offloading.device_images = internal unnamed_addr constant \
             [{count} x {IMAGE}] [\n  {records}\n]\n\
             @.sycl_offloading.descriptor = internal constant {{ i16, i16, ptr, ptr, ptr }} \
             {{ i16 1, i16 {count}, ptr @.sycl_offloading.device_images, ptr null, ptr null }}"
        );
        for (list, function, callee) in [
            ("ctors", "@sycl.descriptor_reg", "@__sycl_register_lib"),
            ("dtors", "@sycl.descriptor_unreg", "@__sycl_unregister_lib"),
        ] {
            module.hook(list, 1, function);
            let call = format!("  call void {callee}(ptr @.sycl_offloading.descriptor)\n");
            module.function(function, "", &call);
            module.declare(&format!("void {callee}(ptr)"));
        }
        module.globals(self.globals, &images)?;
        Ok(module.finish())
    }
}

/// An offload entry from LLVM 20 on, and before.
const ENTRY: &str = "{ i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }";
const ENTRY_19: &str = "{ ptr, ptr, i64, i32, i32 }";

/// The loop over a table.
fn walk(runtime: Runtime, layout: offload_entry::EntryTable, ends: &Ends) -> String {
    let old = layout == offload_entry::EntryTable::V19;
    let record = if old { ENTRY_19 } else { ENTRY };
    let mut text = format!(
        "  br label %check\n\
         check:\n  \
           %entry = phi ptr [ {}, %start ], [ %after, %next ]\n  \
           %at = ptrtoint ptr %entry to i64\n  \
           %left = sub i64 ptrtoint (ptr {} to i64), %at\n  \
           %more = icmp sge i64 %left, ptrtoint (ptr getelementptr ({record}, ptr null, i64 1) to i64)\n  \
           br i1 %more, label %read, label %end\n\
         read:\n",
        ends.first, ends.last
    );
    let mut field = |name: &str, kind: &str, index: u8| {
        let _ = writeln!(
            text,
            "  %{name}.at = getelementptr {record}, ptr %entry, i32 0, i32 {index}\n  \
             %{name} = load {kind}, ptr %{name}.at, align 1"
        );
    };
    let fields = match old {
        true => [
            ("address", "ptr", 0),
            ("name", "ptr", 1),
            ("size", "i64", 2),
            ("flags", "i32", 3),
        ],
        false => [
            ("address", "ptr", 4),
            ("name", "ptr", 5),
            ("size", "i64", 6),
            ("flags", "i32", 3),
        ],
    };
    for (name, kind, index) in fields {
        field(name, kind, index);
    }
    if old {
        field("data", "i32", 4);
    } else {
        field("kind", "i16", 2);
        field("long", "i64", 7);
        field("auxiliary", "ptr", 8);
        let [one, other] = runtime.kinds(layout);
        let _ = writeln!(
            text,
            "  %data = trunc i64 %long to i32\n  \
             %one = icmp eq i16 %kind, {one}\n  \
             %other = icmp eq i16 %kind, {other}\n  \
             %ours = or i1 %one, %other\n  \
             br i1 %ours, label %look, label %next\n\
             look:"
        );
    }
    let prefix = runtime.name();
    let _ = write!(
        text,
        "  %no.address = icmp eq ptr %address, null\n  \
           %no.name = icmp eq ptr %name, null\n  \
           %nothing = and i1 %no.address, %no.name\n  \
           br i1 %nothing, label %next, label %sort\n\
         sort:\n  \
           %type = and i32 %flags, 7\n  \
           %flags.3 = lshr i32 %flags, 3\n  \
           %extern = and i32 %flags.3, 1\n  \
           %flags.4 = lshr i32 %flags, 4\n  \
           %constant = and i32 %flags.4, 1\n  \
           %flags.5 = lshr i32 %flags, 5\n  \
           %normalized = and i32 %flags.5, 1\n  \
           %is.kernel = icmp eq i64 %size, 0\n  \
           br i1 %is.kernel, label %kernel, label %global\n\
         kernel:\n  \
           call i32 @__{prefix}RegisterFunction(ptr %handle, ptr %address, ptr %name, ptr %name, i32 -1, \
           ptr null, ptr null, ptr null, ptr null, ptr null)\n  \
           br label %next\n\
         global:\n  \
           switch i32 %type, label %next [ i32 0, label %variable"
    );
    let mut cases = vec![(
        "variable",
        "RegisterVar",
        "ptr %address, ptr %name, ptr %name, i32 %extern, i64 %size, i32 %constant, i32 0",
    )];
    if !old {
        text += " i32 1, label %managed";
        let arguments = "ptr %auxiliary, ptr %address, ptr %name, i64 %size, i32 %data";
        cases.push(("managed", "RegisterManagedVar", arguments));
    }
    if runtime == Runtime::Hip {
        text += " i32 2, label %surface i32 3, label %texture";
        let arguments = "ptr %address, ptr %name, ptr %name, i32 %data, i32 %extern";
        cases.push(("surface", "RegisterSurface", arguments));
        let arguments =
            "ptr %address, ptr %name, ptr %name, i32 %data, i32 %normalized, i32 %extern";
        cases.push(("texture", "RegisterTexture", arguments));
    }
    text += " ]\n";
    for (label, function, arguments) in cases {
        let _ = writeln!(
            text,
            "{label}:\n  call void @__{prefix}{function}(ptr %handle, {arguments})\n  br label %next"
        );
    }
    let _ = writeln!(
        text,
        "next:\n  %after = getelementptr {record}, ptr %entry, i64 1\n  br label %check\nend:"
    );
    text
}

impl Module {
    fn new(host: &Triple) -> Result<Self, Error> {
        let apple = ["macos", "darwin", "ios"];
        if apple.iter().any(|os| host.os().starts_with(os)) {
            return Err(Error::Host {
                triple: host.as_str().to_owned(),
            });
        }
        Ok(Self {
            text: format!(
                "source_filename = \"offload.wrapper.module\"\ntarget triple = {}\n\n",
                quoted(host.as_str().as_bytes())
            ),
            coff: host.os().starts_with("windows"),
            used: Vec::new(),
        })
    }

    /// Declares or defines the ends of a table.
    fn table(
        &mut self,
        index: usize,
        table: &EntryTable<'_>,
        layout: offload_entry::EntryTable,
    ) -> Result<Ends, Error> {
        let record = match layout {
            offload_entry::EntryTable::V19 => ENTRY_19,
            offload_entry::EntryTable::V20 | offload_entry::EntryTable::V21 => ENTRY,
        };
        match *table {
            EntryTable::StartStop { section } => {
                check_name(section)?;
                let ends = [("start", "A"), ("stop", "Z")];
                let [first, last] = ends.map(|(end, _)| identifier(&format!("__{end}_{section}")));
                if self.coff {
                    for (name, (_, letter)) in [&first, &last].into_iter().zip(ends) {
                        let section = quoted(format!("{section}$O{letter}").as_bytes());
                        let _ = writeln!(
                            self.text,
                            "{name} = weak_odr hidden constant [0 x {record}] zeroinitializer, \
                             section {section}, align 8"
                        );
                        self.used.push(name.clone());
                    }
                } else {
                    let dummy = identifier(&format!("__dummy.{section}"));
                    let section = quoted(section.as_bytes());
                    let _ = writeln!(
                        self.text,
                        "{first} = external hidden constant [0 x {record}]\n\
                         {last} = external hidden constant [0 x {record}]\n\
                         {dummy} = internal constant [0 x {record}] zeroinitializer, \
                         section {section}, align 8"
                    );
                    self.used.push(dummy);
                }
                Ok(Ends { first, last })
            }
            EntryTable::SectionRange {
                section,
                size,
                flags,
                alignment,
            } => {
                check_name(section)?;
                let first = format!("@.offloading.entries.{index}");
                let sort = if flags & 1 == 1 { "global" } else { "constant" };
                let _ = writeln!(
                    self.text,
                    "{first} = internal {sort} [0 x {record}] zeroinitializer, section {}, align {}",
                    quoted(section.as_bytes()),
                    alignment.max(1)
                );
                let last = inside(&first, size);
                Ok(Ends { first, last })
            }
        }
    }

    fn bytes(&mut self, name: &str, bytes: &[u8], section: &str, alignment: u64) {
        let (len, bytes) = (bytes.len(), quoted(bytes));
        let _ = writeln!(
            self.text,
            "{name} = internal constant [{len} x i8] c{bytes}, section \"{section}\", align {alignment}"
        );
    }

    fn hook(&mut self, list: &str, priority: u16, function: &str) {
        let _ = writeln!(
            self.text,
            "@llvm.global_{list} = appending global [1 x {{ i32, ptr, ptr }}] \
             [{{ i32, ptr, ptr }} {{ i32 {priority}, ptr {function}, ptr null }}]"
        );
    }

    fn function(&mut self, name: &str, parameters: &str, body: &str) {
        let _ = write!(
            self.text,
            "\ndefine internal void {name}({parameters}) section \".text.startup\" {{\n\
             start:\n{body}  ret void\n}}\n"
        );
    }

    fn declare(&mut self, function: &str) {
        let _ = writeln!(self.text, "declare {function}");
    }

    /// `images`: names and sizes of what the object has behind each other, at multiples of 8.
    fn globals(&mut self, globals: &[Global<'_>], images: &[(String, u64)]) -> Result<(), Error> {
        for global in globals {
            check_name(global.name())?;
            let name = identifier(global.name());
            let line = match *global {
                Global::Bytes { offset, size, .. } => {
                    let mut start = 0_u64;
                    let mut place = None;
                    for (image, len) in images {
                        let own = offset.checked_sub(start);
                        if let Some(own) = own.filter(|own| own.saturating_add(size) <= *len) {
                            place = Some(match own {
                                0 => format!("ptr {image}"),
                                _ => inside(image, own),
                            });
                        }
                        start += len.next_multiple_of(8);
                    }
                    let place = place.ok_or_else(|| Error::Range {
                        what: format!("symbol `{}`", global.name()),
                        end: offset.saturating_add(size),
                        size: start,
                    })?;
                    format!("{name} = alias i8, {place}")
                }
                Global::Anchor { .. } => format!("define void {name}() {{\n  ret void\n}}"),
                Global::Marker { .. } => format!("{name} = weak hidden constant i8 0"),
            };
            let _ = writeln!(self.text, "{line}");
        }
        Ok(())
    }

    /// Entry sections stay, as they do from LLVM 23 on.
    fn finish(mut self) -> String {
        if !self.used.is_empty() {
            let count = self.used.len();
            let used: Vec<String> = self.used.iter().map(|name| format!("ptr {name}")).collect();
            let _ = writeln!(
                self.text,
                "@llvm.used = appending global [{count} x ptr] [{}], section \"llvm.metadata\"",
                used.join(", ")
            );
        }
        self.text
    }
}

fn inside(name: &str, offset: u64) -> String {
    match offset {
        0 => name.to_owned(),
        _ => format!("getelementptr (i8, ptr {name}, i64 {offset})"),
    }
}

fn identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-$._".contains(c);
    match name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("@{name}"),
        false => format!("@{}", quoted(name.as_bytes())),
    }
}

/// A string of LLVM IR.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => {
                let _ = write!(text, "\\{byte:02X}");
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text.push('"');
    text
}
