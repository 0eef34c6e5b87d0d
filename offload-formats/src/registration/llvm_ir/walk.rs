//! The loop over a table of offload entries, in LLVM IR.

use std::fmt::Write as _;

use super::module::{ENTRY, ENTRY_19, IrTableEnds};
use crate::format::offload_entry;
use crate::registration::fat_binary::Runtime;

/// Writes the loop over a table.
pub(super) fn walk(
    runtime: Runtime,
    layout: offload_entry::EntryLayout,
    ends: &IrTableEnds,
) -> String {
    let old = layout == offload_entry::EntryLayout::V19;
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
    text += &load_fields(runtime, layout, record);
    text += &registration_calls(runtime, layout);
    let _ = writeln!(
        text,
        "next:\n  %after = getelementptr {record}, ptr %entry, i64 1\n  br label %check\nend:"
    );
    text
}

/// Loads the fields of an entry, and skips entries of other kinds.
fn load_fields(runtime: Runtime, layout: offload_entry::EntryLayout, record: &str) -> String {
    let old = layout == offload_entry::EntryLayout::V19;
    let mut text = String::new();
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
    text
}

/// Selects the runtime's function for the entry, and calls it.
fn registration_calls(runtime: Runtime, layout: offload_entry::EntryLayout) -> String {
    let old = layout == offload_entry::EntryLayout::V19;
    let prefix = runtime.name();
    let mut text = format!(
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
    text
}
