//! Refuses kernels in Rust whose atomic operations lose their order when LLVM generates code for NVIDIA GPUs.
//!
//! It checks the bitcode from which code is generated, not that of rustc: without optimization, an operation of `core` contains one for
//! each order, and LLVM makes `or` of others that change nothing, such as `fetch_add(0)`.

use offload_build_core::error::{self, Error};
use offload_formats::escape::terminal;
use offload_formats::format::bitcode::{self, AtomicKind, OrderingAtomic};
use std::fmt;
use std::fs;
use std::path::Path;

/// The first LLVM that keeps the order of atomic read-modify-write operations for NVIDIA GPUs (llvm/llvm-project#179553).
const KEEPS_ORDER: u32 = 23;
/// Number of the first processor with orders. LLVM has no release yet that writes fences for older ones (llvm/llvm-project#222449).
const HAS_ORDERS: u32 = 70;

/// Cause for which atomic operations lose their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderLoss {
    /// The release of the LLVM that generates code.
    Release(u32),
    /// The processor, with every release.
    Processor,
}

impl OrderLoss {
    /// Finds the cause for an NVIDIA GPU, `sm_<number>`; `release` is that of the LLVM that generates code.
    pub(crate) fn find(processor: &str, release: Option<u32>) -> Option<Self> {
        let number = processor.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
        if number.parse().is_ok_and(|number: u32| number < HAS_ORDERS) {
            return Some(Self::Processor);
        }
        let release = release.filter(|release| *release < KEEPS_ORDER)?;
        Some(Self::Release(release))
    }

    /// Tells whether an operation loses its order, as the PTX of LLVM 22 shows. LLVM makes a loop of compare-exchange of some operations,
    /// which has the order from `sm_70` on, and it puts fences around the loop of a small compare-exchange on all processors.
    fn applies_to(self, atomic: OrderingAtomic) -> bool {
        match (self, atomic.kind) {
            (Self::Release(_), AtomicKind::CompareExchange | AtomicKind::Nand) => false,
            (Self::Release(_), AtomicKind::Bitwise) => true,
            (Self::Release(_), _) => !atomic.is_small,
            (Self::Processor, AtomicKind::CompareExchange) => !atomic.is_small,
            (Self::Processor, _) => true,
        }
    }

    /// Fails if the bitcode in a file has operations that lose the order that is asked for.
    pub(crate) fn check(self, path: &Path) -> Result<(), Error> {
        let bytes = fs::read(path).map_err(error::io(path))?;
        let range = 0..bytes.len() as u64;
        let is_lost = |atomic| self.applies_to(atomic);
        let functions = bitcode::functions_with_ordering_atomics(&bytes[..], range, is_lost)
            .map_err(|problem| Error::new(format_args!("{}: {problem}", path.display())))?;
        if functions.is_empty() {
            return Ok(());
        }
        let names = functions
            .iter()
            .map(|name| format!("`{}`", terminal(*name)));
        let remedy = match self {
            OrderLoss::Release(_) => format!("install clang {KEEPS_ORDER} or newer"),
            OrderLoss::Processor => format!("leave out targets before `sm_{HAS_ORDERS}`"),
        };
        Err(Error::new(format_args!(
            "{}, but another order is asked for in {}\n\
             hint: write `fence(Release)` before a `Relaxed` operation and `fence(Acquire)` after it, for `SeqCst` \
             `fence(SeqCst)` (`core::sync::atomic::fence`), or {remedy}",
            self,
            names.collect::<Vec<_>>().join(", "),
        )))
    }
}

impl fmt::Display for OrderLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(release) => write!(
                f,
                "LLVM {release} makes `fetch_add`, `swap` and similar operations of 32 and 64 bits, and `fetch_and`, `fetch_or` and \
                 `fetch_xor` of all sizes, relaxed for NVIDIA GPUs"
            ),
            Self::Processor => write!(
                f,
                "LLVM makes `compare_exchange`, `fetch_add`, `swap` and similar operations relaxed for NVIDIA GPUs before `sm_{HAS_ORDERS}`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_processors_and_releases_that_lose_orders() {
        for (processor, release, expected) in [
            ("sm_60", Some(22), Some(OrderLoss::Processor)),
            ("sm_62", Some(99), Some(OrderLoss::Processor)),
            ("sm_50", None, Some(OrderLoss::Processor)),
            ("sm_70", Some(22), Some(OrderLoss::Release(22))),
            ("sm_100a", Some(22), Some(OrderLoss::Release(22))),
            ("sm_70", Some(23), None),
            ("sm_90a", None, None),
            ("gfx90a", Some(22), None),
        ] {
            assert_eq!(OrderLoss::find(processor, release), expected, "{processor}");
        }
    }
}
