//! A module of LLVM IR under construction.

use std::fmt::Write as _;

use crate::escape::llvm_ir_string;
use crate::format::offload_entry;
use crate::names::Triple;
use crate::registration::entries::EntryTable;
use crate::registration::error::{RegistrationError, check_alignment, check_name};
use crate::registration::global::Global;

/// A module under construction.
pub(super) struct IrModule {
    pub(super) text: String,
    coff: bool,
    /// Unreferenced global values that must stay.
    used: Vec<String>,
}

/// The ends of a table, as constants.
pub(super) struct IrTableEnds {
    pub(super) first: String,
    pub(super) last: String,
}
/// Types of an offload entry: since LLVM 20, and up to LLVM 19.
pub(super) const ENTRY: &str = "{ i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }";
pub(super) const ENTRY_19: &str = "{ ptr, ptr, i64, i32, i32 }";
impl IrModule {
    pub(super) fn new(host: &Triple) -> Result<Self, RegistrationError> {
        let apple = ["macos", "darwin", "ios"];
        if apple.iter().any(|os| host.os().starts_with(os)) {
            return Err(RegistrationError::Host {
                triple: host.as_str().to_owned(),
            });
        }
        Ok(Self {
            text: format!(
                "source_filename = \"offload.wrapper.module\"\ntarget triple = {}\n\n",
                llvm_ir_string(host.as_str().as_bytes())
            ),
            coff: host.os().starts_with("windows"),
            used: Vec::new(),
        })
    }

    /// Declares or defines the ends of a table.
    pub(super) fn table(
        &mut self,
        index: usize,
        table: &EntryTable<'_>,
        layout: offload_entry::EntryLayout,
    ) -> Result<IrTableEnds, RegistrationError> {
        let record = match layout {
            offload_entry::EntryLayout::V19 => ENTRY_19,
            _ => ENTRY,
        };
        match *table {
            EntryTable::StartStop { section, .. } => {
                check_name(section)?;
                let ends = [("start", "A"), ("stop", "Z")];
                let [first, last] = ends.map(|(end, _)| identifier(&format!("__{end}_{section}")));
                if self.coff {
                    for (name, (_, letter)) in [&first, &last].into_iter().zip(ends) {
                        let section = llvm_ir_string(format!("{section}$O{letter}").as_bytes());
                        let _ = writeln!(
                            self.text,
                            "{name} = weak_odr hidden constant [0 x {record}] zeroinitializer, \
                             section {section}, align 8"
                        );
                        self.used.push(name.clone());
                    }
                } else {
                    let dummy = identifier(&format!("__dummy.{section}"));
                    let section = llvm_ir_string(section.as_bytes());
                    let _ = writeln!(
                        self.text,
                        "{first} = external hidden constant [0 x {record}]\n\
                         {last} = external hidden constant [0 x {record}]\n\
                         {dummy} = internal constant [0 x {record}] zeroinitializer, \
                         section {section}, align 8"
                    );
                    self.used.push(dummy);
                }
                Ok(IrTableEnds { first, last })
            }
            EntryTable::SectionRange {
                section,
                size,
                flags,
                alignment,
            } => {
                check_name(section)?;
                let alignment = check_alignment(section, alignment)?;
                let first = format!("@.offloading.entries.{index}");
                let sort = if flags & 1 == 1 { "global" } else { "constant" };
                let _ = writeln!(
                    self.text,
                    "{first} = internal {sort} [0 x {record}] zeroinitializer, section {}, align {}",
                    llvm_ir_string(section.as_bytes()),
                    alignment
                );
                let last = inside(&first, size);
                Ok(IrTableEnds { first, last })
            }
            EntryTable::Symbol { symbol, size } => {
                check_name(symbol)?;
                let first = identifier(symbol);
                let _ = writeln!(
                    self.text,
                    "{first} = external hidden constant [{size} x i8]"
                );
                let last = inside(&first, size);
                Ok(IrTableEnds { first, last })
            }
        }
    }

    pub(super) fn bytes(&mut self, name: &str, bytes: &[u8], section: &str, alignment: u64) {
        let (len, bytes) = (bytes.len(), llvm_ir_string(bytes));
        let _ = writeln!(
            self.text,
            "{name} = internal constant [{len} x i8] c{bytes}, section \"{section}\", align {alignment}"
        );
    }

    pub(super) fn hook(&mut self, list: &str, priority: u16, function: &str) {
        let _ = writeln!(
            self.text,
            "@llvm.global_{list} = appending global [1 x {{ i32, ptr, ptr }}] \
             [{{ i32, ptr, ptr }} {{ i32 {priority}, ptr {function}, ptr null }}]"
        );
    }

    pub(super) fn function(&mut self, name: &str, parameters: &str, body: &str) {
        let _ = write!(
            self.text,
            "\ndefine internal void {name}({parameters}) section \".text.startup\" {{\n\
             start:\n{body}  ret void\n}}\n"
        );
    }

    pub(super) fn declare(&mut self, function: &str) {
        let _ = writeln!(self.text, "declare {function}");
    }

    /// Defines the additional symbols. `images`: names and sizes of the object's consecutive
    /// images, at multiples of 8.
    pub(super) fn globals(
        &mut self,
        globals: &[Global<'_>],
        images: &[(String, u64)],
    ) -> Result<(), RegistrationError> {
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
                    let place = place.ok_or_else(|| RegistrationError::Range {
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

    /// Finishes the module. Keeps entry sections, as LLVM does since 23.
    pub(super) fn finish(mut self) -> String {
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

pub(super) fn inside(name: &str, offset: u64) -> String {
    match offset {
        0 => name.to_owned(),
        _ => format!("getelementptr (i8, ptr {name}, i64 {offset})"),
    }
}

pub(super) fn identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-$._".contains(c);
    match name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("@{name}"),
        false => format!("@{}", llvm_ir_string(name.as_bytes())),
    }
}
