//! Values of `-type`.

use std::path::Path;

use offload_formats::container::object_bundle::ObjectKind;
use offload_formats::format::bundle_text::Comment;
use offload_formats::format::magic::Magic;

use crate::llvm_tool::sources::SourceFile;
use crate::llvm_tool::{LlvmToolError, Sources};

/// How files of a type are bundled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileType {
    /// Text between comments.
    Text(Comment),
    /// A binary bundle.
    Binary,
    /// Sections of an object if the host part, or the input to unbundle, is one; else a binary bundle.
    Object,
    /// An archive whose members are like [`FileType::Object`].
    Archive,
}

/// Names, types and descriptions in the order of help.
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
    /// Returns the type with this name; upper and lower case differ.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let row = TYPES.iter().find(|(known, ..)| *known == name);
        row.map(|(_, file_type, _)| *file_type)
    }

    /// Detects the type of an input: an archive, a text bundle, or [`FileType::Object`].
    pub(super) fn of(file: &SourceFile) -> Self {
        let (data, whole) = (file.apart(), file.whole());
        match Magic::at(&data, whole.clone()) {
            Magic::Archive | Magic::ThinArchive | Magic::BigArchive => Self::Archive,
            _ => Comment::at(&data, whole).map_or(Self::Object, Self::Text),
        }
    }

    /// Chooses the type of a new bundle: an object if an input is one, else the type that the output's name shows.
    ///
    /// # Errors
    ///
    /// Fails if neither shows a type.
    pub(super) fn of_bundle(
        inputs: &[usize],
        output: &Path,
        sources: &Sources,
    ) -> Result<Self, LlvmToolError> {
        let is_object = |input: &usize| {
            let file = sources.file(*input);
            ObjectKind::of(file.data(), file.whole()).is_some()
        };
        if inputs.iter().any(is_object) {
            return Ok(Self::Object);
        }
        let extension = output.extension().and_then(|extension| extension.to_str());
        let found = extension.and_then(Self::from_name);
        found
            .filter(|found| *found != Self::Archive)
            .ok_or_else(|| {
                let hint =
                    "add -type=<type>, or give the output the extension of a type, such as `k.bc`";
                LlvmToolError::new("the type of the files cannot be detected")
                    .with_hint(Some(hint.into()))
            })
    }

    /// Returns the lines of help with the names.
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
