//! The linker wrapper: what is done around a host link, so that its device code is linked too.
//!
//! A pipeline of rooms; each uses only those before it. `error.rs`, `tool.rs` (the name under which it was started),
//! `temporaries.rs` and `workplace.rs` serve all of them.
//!
//! | room      | phase                                                       | files               |
//! |-----------|-------------------------------------------------------------|---------------------|
//! | `line`    | understand the command line                                 | `arguments.rs`, by the tables of `options.rs`; `family.rs`, `host.rs` |
//! | `report`  | what is said of each image; commands as they are shown      | `fates.rs`, `shown.rs`, `trace.rs` |
//! | `inputs`  | look for device code                                        | `scan.rs`, `seen.rs`, `blocks.rs`, `libraries.rs` |
//! |           | make objects of what bundles have for the host              | `host_part.rs`, `host_archive.rs` |
//! |           | find the images, in bundles too                             | `images.rs`, `image_bytes.rs` |
//! | `choose`  | which are linked: which archive members the host link takes | `select.rs`, `distinct.rs`, `host_entries.rs` |
//! |           | and which of them together                                  | `groups.rs`, `bundle_choice.rs` |
//! |           | what libraries for devices there are                        | `device_libraries.rs` |
//! | `plan`    | the device links                                            | `device_link.rs` |
//! |           | pack what was linked as runtimes load it                    | `containers.rs` |
//! |           | what registers it, written or compiled from C               | `registration.rs`, `from_c.rs` |
//! |           | what the host link gets besides                             | `runtime.rs`, `rpath.rs` |
//! | `run`     | without device code: become the host linker, or answer      | `start.rs`, `questions.rs` |
//! |           | with device code: the phases in their order                 | `link.rs` |
//! |           | the device links, in parallel; then the host link           | `device_links.rs`, `linked_image.rs`, `host_linker.rs`, `relocatable.rs` |

mod actions;
mod choose;
mod error;
mod inputs;
mod line;
mod plan;
mod report;
mod run;
mod temporaries;
mod tool;
mod workplace;

pub(crate) use run::start::run;
