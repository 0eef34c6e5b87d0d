//! Makes Cargo link a program. Its `main` function is in `src/main.c`.
#![no_main]
