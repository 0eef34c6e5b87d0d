//! Registrations as LLVM IR in text form, for `llvm-offload-wrapper`.
//!
//! clang since LLVM 15 compiles it under the names `.ll` and `.bc`. A module has the same content
//! as the object that this crate writes; symbols have LLVM's names. On COFF the ends of a table are
//! in `$OA` and `$OZ`, as in `clang-linker-wrapper` 22. Mach-O is not supported.

mod module;
mod walk;

use std::fmt::Write as _;

use super::error::{RegistrationError, check_name};
use super::fat_binary::{FatBinary, HostTable, Runtime};
use super::openmp::OpenMp;
use super::sycl::Sycl;
use crate::escape::llvm_ir_string;
use crate::format::offload_entry;
use crate::format::pieces::Embedded;
use crate::names::Triple;
use module::{ENTRY, IrModule, IrTableEnds, identifier, inside};
use walk::walk;

/// Returns the bytes of a blob, which IR contains as text.
///
/// # Errors
///
/// Fails if the blob is not in memory.
fn known(content: Embedded<'_>) -> Result<Vec<u8>, RegistrationError> {
    content.in_memory().ok_or(RegistrationError::Copied)
}

impl OpenMp<'_> {
    /// Writes the registration as a module.
    ///
    /// # Errors
    ///
    /// Fails if an image or a symbol exceeds its blob, or the object format of `host` is not supported, or if a blob is
    /// not in memory.
    pub fn to_ir(&self, host: &Triple) -> Result<String, RegistrationError> {
        let mut module = IrModule::new(host)?;
        let ends = module.table(0, &self.table, offload_entry::EntryLayout::V21)?;
        let IrTableEnds { first, last } = &ends;
        let mut records = Vec::new();
        let mut images = Vec::new();
        for (index, blob) in self.images.iter().enumerate() {
            let (start, end) = blob.checked(index)?;
            let name = match index {
                0 => "@.omp_offloading.device_image".to_owned(),
                _ => format!("@.omp_offloading.device_image.{index}"),
            };
            module.bytes(&name, &known(blob.bytes)?, self.section.name(), 8);
            let (start, end) = (inside(&name, start), inside(&name, end));
            records.push(format!(
                "{{ ptr, ptr, ptr, ptr }} {{ ptr {start}, ptr {end}, ptr {first}, ptr {last} }}"
            ));
            images.push((name, blob.bytes.size()));
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
    /// Writes the registration as a module.
    ///
    /// # Errors
    ///
    /// Fails if a symbol exceeds the fat binary, the object format of `host` is not supported, or the fat binary is not
    /// in memory.
    pub fn to_ir(&self, host: &Triple) -> Result<String, RegistrationError> {
        let mut module = IrModule::new(host)?;
        let name = self.runtime.name();
        let image = "@.fatbin_image".to_owned();
        let mut content = known(self.bytes)?;
        let padding = self.runtime.padding(self.bytes.size());
        content.extend((0..padding).map(|_| 0));
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
        self.define_symbols(&mut module, &image)?;
        let mut walks = String::new();
        for (index, HostTable { layout, table }) in self.tables.iter().enumerate() {
            let ends = module.table(index, table, *layout)?;
            let function = format!("@.{name}.globals_reg.{index}");
            let body = walk(self.runtime, *layout, &ends);
            module.function(&function, "ptr %handle", &body);
            let _ = writeln!(walks, "  call void {function}(ptr %handle)");
        }
        let end = match self.runtime {
            Runtime::Hip => String::new(),
            Runtime::Cuda => format!("  call void @__{name}RegisterFatBinaryEnd(ptr %handle)\n"),
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
        self.declare_functions(&mut module);
        module.globals(self.globals, &[(image, self.bytes.size())])?;
        Ok(module.finish())
    }

    /// Defines the symbols of HIP objects that register themselves.
    fn define_symbols(&self, module: &mut IrModule, image: &str) -> Result<(), RegistrationError> {
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
        Ok(())
    }

    /// Declares the library functions that the module calls.
    fn declare_functions(&self, module: &mut IrModule) {
        let name = self.runtime.name();
        let hip = self.runtime == Runtime::Hip;
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
    }
}

impl Sycl<'_> {
    /// Writes the registration as a module.
    ///
    /// # Errors
    ///
    /// Fails if an image's kind does not fit into a byte, a symbol exceeds the images, the object
    /// format of `host` is not supported, or an image is not in memory.
    pub fn to_ir(&self, host: &Triple) -> Result<String, RegistrationError> {
        const IMAGE: &str = "{ i16, i8, i8, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }";
        let mut module = IrModule::new(host)?;
        let mut records = Vec::new();
        let mut images = Vec::new();
        let mut strings = 0_usize;
        for (index, image) in self.images.iter().enumerate() {
            let name = format!("@.sycl_offloading.{index}.data");
            module.bytes(&name, &known(image.bytes)?, self.section.name(), 8);
            let end = inside(&name, image.bytes.size());
            let mut string = |module: &mut IrModule, text: &[u8]| {
                let name = format!("@.sycl_offloading.string.{strings}");
                strings += 1;
                let bytes = [text, b"\0"].concat();
                let (len, text) = (bytes.len(), llvm_ir_string(&bytes));
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
            let [triple, compile, link] = image.texts()?.map(|text| string(&mut module, text));
            let (count, entries) = (entries.len(), entries.join(",\n  "));
            let table = format!("@.sycl_offloading.entries_arr.{index}");
            let _ = writeln!(
                module.text,
                "{table} = internal constant [{count} x {ENTRY}] [\n  {entries}\n]"
            );
            let kind = image.kind.raw();
            let kind =
                u8::try_from(kind).map_err(|_| RegistrationError::ImageKind { index, kind })?;
            records.push(format!(
                "{IMAGE} {{ i16 3, i8 8, i8 {kind}, ptr {triple}, ptr {compile}, ptr {link}, ptr {name}, \
                 ptr {end}, ptr {table}, ptr getelementptr ([{count} x {ENTRY}], ptr {table}, i64 1), \
                 ptr null, ptr null }}"
            ));
            images.push((name, image.bytes.size()));
        }
        let count = u16::try_from(records.len()).map_err(|_| RegistrationError::Images {
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
