//! Names of targets on the command line.

use offload_formats::names::{Processor, spelling};

/// Checks a name that selects images. What is no processor but another spelling of one, or a product, would select none.
pub(super) fn parse(text: &str) -> Result<String, String> {
    let processor = text.split(':').next().unwrap_or(text);
    if processor.is_empty() {
        return Err("expected a target such as gfx90a".to_owned());
    }
    let is_known = Processor::find(&processor.replacen("compute_", "sm_", 1)).is_some();
    if is_known || text.ends_with('*') || is_well_formed(processor) {
        return Ok(text.to_owned());
    }
    let meant = spelling::meant(text);
    match meant.or_else(|| spelling::nearest_processor(text).map(str::to_owned)) {
        Some(meant) => Err(format!(
            "not a processor; did you mean `{meant}`? `cargo offload targets` lists them"
        )),
        // Triples, and names of other vendors.
        None => Ok(text.to_owned()),
    }
}

/// Tells whether the name is that of a processor which newer compilers may know, or of a family: `gfx1300`, `gfx9`, `sm_150a`.
fn is_well_formed(processor: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(number) = processor.strip_prefix("gfx") {
        let is_hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        return !number.is_empty() && number.bytes().all(is_hexadecimal);
    }
    let number = ["sm_", "compute_"]
        .iter()
        .find_map(|start| processor.strip_prefix(start));
    number.is_some_and(|number| is_number(number.trim_end_matches(['a', 'f'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_other_spellings_and_products() {
        for text in [
            "gfx90a",
            "gfx90a:xnack+",
            "gfx9",
            "gfx94*",
            "gfx9-4-generic",
            "gfx1300",
            "sm_90a",
            "sm_150",
            "compute_80",
            "x86_64-pc-linux-gnu",
            "amdgcnspirv",
            "intel_gpu_pvc",
        ] {
            assert_eq!(parse(text), Ok(text.to_owned()));
        }
        assert!(parse("").is_err());
        for (text, meant) in [
            ("sm80", "sm_80"),
            ("90a", "sm_90a"),
            ("GFX90A", "gfx90a"),
            ("MI300X", "gfx942"),
            ("RTX-4090", "sm_89"),
            ("sm_9O", "sm_90"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains(&format!("did you mean `{meant}`?")),
                "{text}: {error}"
            );
        }
    }
}
