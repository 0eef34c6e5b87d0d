//! AMD's comgr, by which the HIP runtime knows kernels.

use super::package::Package;
use std::path::Path;
use std::process::Command;

/// Kernels and formats of `printf` that comgr reads in an image; nothing where it is missing.
pub fn comgr(package: &Package, image: &Path) -> Option<String> {
    const PROGRAM: &str = r#"
#include <amd_comgr/amd_comgr.h>
#include <stdio.h>
#include <stdlib.h>
#define CHECK(call) do { if (call) { puts(#call); return 1; } } while (0)
static int list(amd_comgr_metadata_node_t root, const char *key, const char *field) {
  amd_comgr_metadata_node_t all, one, name;
  size_t count = 0;
  if (amd_comgr_metadata_lookup(root, key, &all)) return 0;
  CHECK(amd_comgr_get_metadata_list_size(all, &count));
  for (size_t i = 0; i < count; i++) {
    char text[256];
    size_t size = sizeof text;
    CHECK(amd_comgr_index_list_metadata(all, i, &one));
    if (field) CHECK(amd_comgr_metadata_lookup(one, field, &name)); else name = one;
    CHECK(amd_comgr_get_metadata_string(name, &size, text));
    puts(text);
  }
  return 0;
}
int main(int argc, char **argv) {
  FILE *file = fopen(argv[1], "rb");
  fseek(file, 0, SEEK_END);
  size_t size = ftell(file);
  rewind(file);
  char *bytes = malloc(size);
  if (fread(bytes, 1, size, file) != size) return 1;
  amd_comgr_data_t data;
  amd_comgr_metadata_node_t root;
  CHECK(amd_comgr_create_data(AMD_COMGR_DATA_KIND_EXECUTABLE, &data));
  CHECK(amd_comgr_set_data(data, size, bytes));
  CHECK(amd_comgr_get_data_metadata(data, &root));
  return list(root, "amdhsa.kernels", ".symbol") || list(root, "amdhsa.printf", NULL);
}
"#;
    super::tool("comgr", &["libamd_comgr.so"])?;
    let header = [
        "/usr/include/amd_comgr/amd_comgr.h",
        "/usr/include/amd_comgr.h",
    ];
    let mut header = header.into_iter();
    let header = header.find(|path| Path::new(path).is_file()).unwrap();
    package.put(
        "comgr.c",
        &PROGRAM.replace("<amd_comgr/amd_comgr.h>", &format!("\"{header}\"")),
    );
    let mut cc = Command::new("cc");
    cc.args(["comgr.c", "-o", "comgr", "-lamd_comgr"])
        .current_dir(package.folder.root());
    super::run(&mut cc);
    Some(super::run(Command::new(package.at("comgr")).arg(image)))
}
