//! Says how many device images each module of the program has.

mod amd {
    include!(concat!(env!("OUT_DIR"), "/amd.rs"));
}
mod nvidia {
    include!(concat!(env!("OUT_DIR"), "/nvidia.rs"));
}

fn main() {
    println!("AMD: {}", amd::images().len());
    println!("NVIDIA: {}", nvidia::images().len());
    #[cfg(feature = "library")]
    println!("library: {}", library::images());
}

#[cfg(feature = "library")]
mod library {
    mod amd {
        include!(concat!(env!("OUT_DIR"), "/amd_library.rs"));
    }
    mod nvidia {
        include!(concat!(env!("OUT_DIR"), "/nvidia_library.rs"));
    }

    pub fn images() -> usize {
        amd::images().len() + nvidia::images().len()
    }
}
