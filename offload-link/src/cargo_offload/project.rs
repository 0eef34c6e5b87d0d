//! Commands for a package: what it declares, what this machine can build, and Cargo with our linker.
//!
//! | file                | contents |
//! |---------------------|----------|
//! | `create.rs`         | `new`, `init`: packages that build device code at once |
//! | `templates.rs`      | the packages of `templates/` |
//! | `config.rs`         | `config`: effective keys and their origins |
//! | `doctor.rs`         | `doctor`: tools of this machine, and whether a package builds |
//! | `targets.rs`        | `targets`: processors, products, and the compilers for them |
//! | `build.rs`          | `build`: Cargo, and the libraries of device code that a build makes |
//! | `build_script.rs`   | `build-script`: device code for a build script without `offload-build` |
//! | `export.rs`         | CMake packages and pkg-config files for these libraries |
//! | `plan.rs`           | `plan`: what builds of device code would run |
//! | `cargo_command.rs`  | `run`, `test`, `install`: Cargo with our linker and with progress of device code |
//! | `progress.rs`       | lines for steps that build scripts finish |
//! | `schema.rs`         | `schema`: JSON schema of the manifest's table |
//! | `packages.rs`       | packages that Cargo finds, and the variables that their build scripts would have |
//! | `cargo_settings.rs` | Cargo's configuration, as far as it names linkers |
//! | `system.rs`         | the operating system, for commands that install something |

mod build;
mod build_script;
mod cargo_command;
mod cargo_settings;
mod config;
mod create;
mod doctor;
mod export;
mod packages;
mod plan;
mod progress;
mod rust_programs;
mod schema;
mod system;
mod targets;
mod templates;

pub(super) use build::{BuildLine, run as build};
pub(super) use build_script::{BuildScriptLine, run as build_script};
pub(super) use cargo_command::{CargoOptions, run as cargo};
pub(super) use config::{ConfigLine, run as config};
pub(super) use create::{InitLine, NewLine, init, new};
pub(super) use doctor::{DoctorLine, run as doctor};
pub(super) use plan::{PlanLine, run as plan};
pub(super) use schema::{SchemaLine, run as schema};
pub(super) use targets::{TargetsLine, run as targets};
