//! The GPUs that people buy, by processor.
//!
//! Sources: AMD, ROCm documentation, "Accelerator and GPU hardware specifications"; LLVM, "User Guide for AMDGPU
//! Backend", "Processors"; NVIDIA, "CUDA GPU Compute Capability" (developer.nvidia.com/cuda-gpus). Products are
//! examples: no list names every card.

/// A processor's architecture and the products that contain it.
#[derive(Debug)]
pub struct ProcessorProducts {
    processor: &'static str,
    architecture: &'static str,
    products: &'static [&'static str],
}

impl ProcessorProducts {
    /// Finds the row of a processor. `sm_90a` and `sm_100f` are code for the products of `sm_90` and `sm_100`.
    #[must_use]
    pub fn of(processor: &str) -> Option<&'static Self> {
        let base = match processor.strip_prefix("sm_") {
            Some(number) => number.trim_end_matches(['a', 'f']),
            None => processor,
        };
        let is_row = |row: &&Self| match row.processor.strip_prefix("sm_") {
            Some(number) => processor.starts_with("sm_") && number == base,
            None => row.processor == base,
        };
        PRODUCTS.iter().find(is_row)
    }

    /// Lists all rows, AMD's first, by processor.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        PRODUCTS.iter()
    }

    /// Returns the name of the processor, such as `gfx90a`.
    #[must_use]
    pub fn processor(&self) -> &'static str {
        self.processor
    }

    /// Returns the vendor's name of the generation, such as `CDNA 2`.
    #[must_use]
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// Returns products, such as `Instinct MI250X`, without the vendor.
    #[must_use]
    pub fn products(&self) -> &'static [&'static str] {
        self.products
    }
}

const fn row(
    processor: &'static str,
    architecture: &'static str,
    products: &'static [&'static str],
) -> ProcessorProducts {
    ProcessorProducts {
        processor,
        architecture,
        products,
    }
}

const PRODUCTS: &[ProcessorProducts] = &[
    row("gfx600", "GCN 1", &["Radeon HD 7970", "Radeon R9 280X"]),
    row("gfx601", "GCN 1", &["Radeon HD 7870", "Radeon HD 7770"]),
    row("gfx602", "GCN 1", &["Radeon R7 240", "Radeon R7 250"]),
    row("gfx700", "GCN 2", &["A10-7850K"]),
    row("gfx701", "GCN 2", &["FirePro W9100", "FirePro S9150"]),
    row("gfx702", "GCN 2", &["Radeon R9 290X", "Radeon R9 390X"]),
    row("gfx704", "GCN 2", &["Radeon HD 7790", "Radeon R7 260X"]),
    row("gfx801", "GCN 3", &["FX-8800P"]),
    row("gfx802", "GCN 3", &["Radeon R9 285", "Radeon R9 380"]),
    row(
        "gfx803",
        "GCN 3, GCN 4",
        &[
            "Instinct MI6",
            "Instinct MI8",
            "Radeon R9 Fury",
            "Radeon RX 460",
            "Radeon RX 470",
            "Radeon RX 480",
            "Radeon RX 570",
            "Radeon RX 580",
        ],
    ),
    row("gfx805", "GCN 3", &["FirePro S7150", "FirePro W7100"]),
    row(
        "gfx900",
        "GCN 5",
        &["Instinct MI25", "Radeon RX Vega 56", "Radeon RX Vega 64"],
    ),
    row("gfx902", "GCN 5", &["Ryzen 3 2200G", "Ryzen 5 2400G"]),
    row(
        "gfx906",
        "GCN 5.1",
        &[
            "Instinct MI50",
            "Instinct MI60",
            "Radeon VII",
            "Radeon Pro VII",
        ],
    ),
    row("gfx908", "CDNA", &["Instinct MI100"]),
    row(
        "gfx90a",
        "CDNA 2",
        &["Instinct MI210", "Instinct MI250", "Instinct MI250X"],
    ),
    row("gfx90c", "GCN 5.1", &["Ryzen 5 4600G", "Ryzen 7 5700G"]),
    row(
        "gfx942",
        "CDNA 3",
        &["Instinct MI300A", "Instinct MI300X", "Instinct MI325X"],
    ),
    row("gfx950", "CDNA 4", &["Instinct MI350X", "Instinct MI355X"]),
    row("gfx1010", "RDNA", &["Radeon RX 5700", "Radeon RX 5600 XT"]),
    row("gfx1011", "RDNA", &["Radeon Pro V520"]),
    row("gfx1012", "RDNA", &["Radeon RX 5500", "Radeon RX 5500 XT"]),
    row(
        "gfx1030",
        "RDNA 2",
        &[
            "Radeon RX 6800",
            "Radeon RX 6900 XT",
            "Radeon RX 6950 XT",
            "Radeon Pro W6800",
            "Radeon Pro V620",
        ],
    ),
    row(
        "gfx1031",
        "RDNA 2",
        &["Radeon RX 6700 XT", "Radeon RX 6750 XT"],
    ),
    row(
        "gfx1032",
        "RDNA 2",
        &["Radeon RX 6600", "Radeon RX 6650 XT", "Radeon Pro W6600"],
    ),
    row("gfx1033", "RDNA 2", &["Steam Deck"]),
    row(
        "gfx1034",
        "RDNA 2",
        &["Radeon RX 6400", "Radeon RX 6500 XT"],
    ),
    row("gfx1035", "RDNA 2", &["Radeon 660M", "Radeon 680M"]),
    row("gfx1036", "RDNA 2", &["Ryzen 7 7700X", "Ryzen 9 7950X"]),
    row(
        "gfx1100",
        "RDNA 3",
        &[
            "Radeon RX 7900 XTX",
            "Radeon RX 7900 XT",
            "Radeon Pro W7900",
            "Radeon Pro W7800",
        ],
    ),
    row(
        "gfx1101",
        "RDNA 3",
        &[
            "Radeon RX 7800 XT",
            "Radeon RX 7700 XT",
            "Radeon Pro W7700",
            "Radeon Pro V710",
        ],
    ),
    row("gfx1102", "RDNA 3", &["Radeon RX 7600", "Radeon Pro W7600"]),
    row("gfx1103", "RDNA 3", &["Radeon 740M", "Radeon 780M"]),
    row("gfx1150", "RDNA 3.5", &["Radeon 880M", "Radeon 890M"]),
    row("gfx1151", "RDNA 3.5", &["Radeon 8050S", "Radeon 8060S"]),
    row("gfx1152", "RDNA 3.5", &["Radeon 840M", "Radeon 860M"]),
    row("gfx1200", "RDNA 4", &["Radeon RX 9060 XT"]),
    row(
        "gfx1201",
        "RDNA 4",
        &["Radeon RX 9070", "Radeon RX 9070 XT", "Radeon AI Pro R9700"],
    ),
    row("sm_20", "Fermi", &["Tesla C2075", "GeForce GTX 480"]),
    row("sm_21", "Fermi", &["GeForce GTX 560"]),
    row("sm_30", "Kepler", &["Tesla K10", "GeForce GTX 680"]),
    row("sm_32", "Kepler", &["Jetson TK1"]),
    row(
        "sm_35",
        "Kepler",
        &["Tesla K20", "Tesla K40", "GeForce GTX 780"],
    ),
    row("sm_37", "Kepler", &["Tesla K80"]),
    row("sm_50", "Maxwell", &["Tesla M10", "GeForce GTX 750"]),
    row(
        "sm_52",
        "Maxwell",
        &[
            "Tesla M40",
            "Tesla M60",
            "GeForce GTX 970",
            "GeForce GTX 980",
        ],
    ),
    row("sm_53", "Maxwell", &["Jetson Nano", "Jetson TX1"]),
    row("sm_60", "Pascal", &["Tesla P100", "Quadro GP100"]),
    row(
        "sm_61",
        "Pascal",
        &[
            "Tesla P4",
            "Tesla P40",
            "GeForce GTX 1050",
            "GeForce GTX 1060",
            "GeForce GTX 1070",
            "GeForce GTX 1080",
        ],
    ),
    row("sm_62", "Pascal", &["Jetson TX2"]),
    row("sm_70", "Volta", &["Tesla V100", "TITAN V"]),
    row("sm_72", "Volta", &["Jetson AGX Xavier"]),
    row(
        "sm_75",
        "Turing",
        &[
            "Tesla T4",
            "GeForce GTX 1650",
            "GeForce GTX 1660",
            "GeForce RTX 2060",
            "GeForce RTX 2070",
            "GeForce RTX 2080",
            "Quadro RTX 6000",
            "Quadro RTX 8000",
        ],
    ),
    row("sm_80", "Ampere", &["A100", "A30"]),
    row(
        "sm_86",
        "Ampere",
        &[
            "A2",
            "A10",
            "A16",
            "A40",
            "GeForce RTX 3050",
            "GeForce RTX 3060",
            "GeForce RTX 3070",
            "GeForce RTX 3080",
            "GeForce RTX 3090",
            "RTX A2000",
            "RTX A4000",
            "RTX A5000",
            "RTX A6000",
        ],
    ),
    row("sm_87", "Ampere", &["Jetson AGX Orin", "Jetson Orin Nano"]),
    row(
        "sm_89",
        "Ada Lovelace",
        &[
            "L4",
            "L40",
            "L40S",
            "GeForce RTX 4050",
            "GeForce RTX 4060",
            "GeForce RTX 4070",
            "GeForce RTX 4080",
            "GeForce RTX 4090",
            "RTX 6000 Ada",
        ],
    ),
    row("sm_90", "Hopper", &["H100", "H200", "GH200"]),
    row("sm_100", "Blackwell", &["B200", "GB200"]),
    row("sm_103", "Blackwell", &["B300", "GB300"]),
    row("sm_110", "Blackwell", &["Jetson AGX Thor"]),
    row(
        "sm_120",
        "Blackwell",
        &[
            "GeForce RTX 5050",
            "GeForce RTX 5060",
            "GeForce RTX 5070",
            "GeForce RTX 5080",
            "GeForce RTX 5090",
            "RTX PRO 6000 Blackwell",
        ],
    ),
    row("sm_121", "Blackwell", &["GB10", "DGX Spark"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Processor;

    #[test]
    fn lists_known_processors_in_their_order_once() {
        let known: Vec<&str> = Processor::all().map(Processor::name).collect();
        let place = |row: &ProcessorProducts| {
            let place = known.iter().position(|name| *name == row.processor);
            place.unwrap_or_else(|| panic!("`{}` is no processor", row.processor))
        };
        let places: Vec<usize> = ProcessorProducts::all().map(place).collect();
        assert!(places.is_sorted_by(|one, other| one < other), "{places:?}");
    }

    #[test]
    fn finds_the_products_of_code_for_one_architecture_alone() {
        let found = |name| ProcessorProducts::of(name).map(|row| row.processor);
        assert_eq!(found("sm_90a"), Some("sm_90"));
        assert_eq!(found("sm_100f"), Some("sm_100"));
        assert_eq!(found("gfx90a"), Some("gfx90a"));
        assert_eq!(found("gfx90"), None);
        assert_eq!(found("sm_9"), None);
    }
}
