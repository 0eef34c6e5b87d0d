//! The linker wrapper: links the device code of a host link, and registers it.
//!
//! A pipeline of rooms; each uses only those before it. `error.rs`, `tool.rs` (the name under which the tool was
//! started), `actions.rs` (executes or only shows), `temporaries.rs` and `workplace.rs` serve all of them. `plan` computes values: it searches, reads and
//! starts nothing.
//!
//! | room      | phase                                                       | files               |
//! |-----------|-------------------------------------------------------------|---------------------|
//! | `line`    | parse the command line                                      | `arguments.rs`, by the tables of `options.rs`; `family.rs`, `host.rs`, `elf_linker.rs`, `values.rs` |
//! | `report`  | report each image's fate; show commands                     | `fates.rs`, `shown.rs`, `trace.rs` |
//! | `installed` | find programs, runtimes and the host linker, when a later phase needs them | `programs.rs`, `device_programs.rs`, `host_compiler.rs`, `host_linker.rs`, `runtimes.rs`, `rpath_folders.rs` |
//! | `inputs`  | find inputs with device code                                | `scan.rs`, `seen.rs`, `file.rs`, `blocks.rs`, `archive_index.rs`, `libraries.rs`, `linker_script.rs` |
//! |           | read host objects beyond their headers                      | `host_objects.rs`, `symbols.rs` |
//! |           | make objects of bundles' host parts                         | `host_part.rs`, `host_archive.rs` |
//! |           | find the images, also in bundles                            | `images.rs`, `image_bytes.rs` |
//! | `choose`  | choose the images to link, by the archive members in the link | `select.rs`, `linked_units.rs`, `host_units.rs`, `host_search.rs`, `host_search/`, `needed.rs`, `distinct.rs`, `host_entries.rs` |
//! |           | group the images that are linked together                   | `groups.rs`, `releases.rs`, `bundle_choice.rs` |
//! |           | find device libraries                                       | `device_libraries.rs` |
//! |           | make a link job of each group, from its images' content     | `link_jobs.rs`, `content.rs` |
//! | `plan`    | plan the device links                                       | `device_link.rs` |
//! |           | make the registration, directly or from C                   | `containers.rs`, `registration.rs`, `from_c.rs` |
//! |           | add options to the host link                                | `runtime.rs`, `placement.rs` |
//! | `run`     | without device code: exec the host linker, or answer        | `start.rs`, `questions.rs` |
//! |           | with device code: run the phases in order                   | `link.rs` |
//! |           | pack linked images in the runtimes' formats                 | `packing.rs`, `override_image.rs` |
//! |           | run the device links in parallel, then the host link        | `device_links.rs`, `linked_image.rs`, `host_linker.rs`, `relocatable.rs`, `unseen.rs` |

mod actions;
mod choose;
mod error;
mod inputs;
mod installed;
mod line;
mod plan;
mod report;
mod run;
mod temporaries;
mod tool;
mod workplace;

pub(crate) use run::start::run;
