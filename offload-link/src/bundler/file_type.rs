//! What `-type` can be.

use offload_build::format::bundle_text::Comment;

/// How the files of a type are bundled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileType {
    /// Text, between comments.
    Text(Comment),
    /// A binary bundle.
    Binary,
    /// Sections of an object when the host part, or what is unbundled, is one; else a binary bundle.
    Object,
    /// An archive, each member of which is as [`FileType::Object`] says.
    Archive,
}

/// Name, handling, what it is; in the order of help.
const TYPES: [(&str, FileType, &str); 12] = [
    ("i", FileType::Text(Comment::Slashes), "cpp-output"),
    ("ii", FileType::Text(Comment::Slashes), "c++-cpp-output"),
    ("cui", FileType::Text(Comment::Slashes), "cuda-cpp-output"),
    ("hipi", FileType::Text(Comment::Slashes), "hip-cpp-output"),
    ("d", FileType::Text(Comment::Hash), "dependency"),
    ("ll", FileType::Text(Comment::Semicolon), "llvm"),
    ("bc", FileType::Binary, "llvm-bc"),
    ("s", FileType::Text(Comment::Hash), "assembler"),
    ("o", FileType::Object, "object"),
    ("a", FileType::Archive, "archive of objects"),
    ("gch", FileType::Binary, "precompiled-header"),
    ("ast", FileType::Binary, "clang AST file"),
];

impl FileType {
    /// The type of that name; letters of the other case are other names.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let row = TYPES.iter().find(|(known, ..)| *known == name);
        row.map(|(_, file_type, _)| *file_type)
    }

    /// The lines of help that list the names.
    pub(super) fn help() -> String {
        let lines = TYPES.map(|(name, _, what)| format!("\n    {name:<4} - {what}"));
        lines.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_every_type_of_llvm_and_no_other() {
        assert_eq!(
            FileType::from_name("s"),
            Some(FileType::Text(Comment::Hash))
        );
        assert_eq!(FileType::from_name("BC"), None);
        assert_eq!(FileType::from_name(""), None);
        assert_eq!(FileType::help().lines().count(), 13);
    }
}
