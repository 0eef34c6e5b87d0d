//! Stands for `compiler_builtins` in a sysroot for GPUs: LLVM's back ends for them call none of its functions.
#![feature(compiler_builtins)]
#![compiler_builtins]
#![no_std]
#![allow(internal_features)]
