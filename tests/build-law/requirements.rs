//! `OFFLOAD_REQUIRE` makes tests fail whose programs are missing (`tests/support/mod.rs`).

use crate::support;

#[test]
#[should_panic(expected = "OFFLOAD_REQUIRE: `llvm18` is not one of [\"llvm16\"")]
fn rejects_unknown_words() {
    support::required("llvm19,llvm18");
}

#[test]
#[should_panic(expected = "OFFLOAD_REQUIRE lists cuda, and there is no ptxas or nvcc")]
fn fails_when_a_required_tool_is_missing() {
    support::missing("cuda", "ptxas or nvcc", true);
}
