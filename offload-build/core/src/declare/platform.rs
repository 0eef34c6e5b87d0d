//! Conditions of the tables `[target.…]` in a `Cargo.toml`: names of targets, and `cfg(…)` as "The Cargo Book" has it,
//! "Platform specific dependencies".

/// Tells whether a table with this name holds for the target that Cargo builds for. `variable` returns what Cargo tells build
/// scripts. A condition that cannot be read holds: Cargo reports it.
pub fn holds(table: &str, variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let condition = table
        .trim()
        .strip_prefix("cfg(")
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(condition) = condition else {
        return variable("TARGET").is_none_or(|target| target == table);
    };
    let mut rest = Rest(condition);
    match rest.condition(variable, 0) {
        Some(value) if rest.0.trim().is_empty() => value,
        _ => true,
    }
}

/// The part of a condition that is not yet read.
struct Rest<'t>(&'t str);

/// Depth from which on conditions are not read.
const DEEPEST: usize = 64;

impl<'t> Rest<'t> {
    /// Reads `name`, `name = "value"`, `all(…)`, `any(…)` or `not(…)`.
    fn condition(
        &mut self,
        variable: &dyn Fn(&str) -> Option<String>,
        depth: usize,
    ) -> Option<bool> {
        let name = self.word()?;
        if self.takes('(') {
            let mut parts = Vec::new();
            while !self.takes(')') {
                parts.push((depth < DEEPEST).then(|| self.condition(variable, depth + 1))??);
                if !self.takes(',') && !self.0.trim_start().starts_with(')') {
                    return None;
                }
            }
            return match (name, parts.as_slice()) {
                ("all", parts) => Some(parts.iter().all(|part| *part)),
                ("any", parts) => Some(parts.iter().any(|part| *part)),
                ("not", [part]) => Some(!part),
                _ => None,
            };
        }
        let told = variable(&format!("CARGO_CFG_{}", name.to_uppercase()));
        if !self.takes('=') {
            return Some(match name {
                "true" => true,
                "false" => false,
                _ => told.is_some(),
            });
        }
        let rest = self.0.trim_start().strip_prefix('"')?;
        let (value, rest) = rest.split_once('"')?;
        self.0 = rest;
        // Several values of one name are separated by commas.
        Some(told.is_some_and(|told| told.split(',').any(|told| told == value)))
    }

    fn word(&mut self) -> Option<&'t str> {
        let text = self.0.trim_start();
        let is_part = |char: char| char.is_alphanumeric() || char == '_';
        let (word, rest) = text.split_at(text.find(|char| !is_part(char)).unwrap_or(text.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    fn takes(&mut self, char: char) -> bool {
        let rest = self.0.trim_start().strip_prefix(char);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_conditions_as_cargo_does() {
        let variable = |name: &str| {
            let value = match name {
                "TARGET" => "x86_64-unknown-linux-gnu",
                "CARGO_CFG_UNIX" => "",
                "CARGO_CFG_TARGET_OS" => "linux",
                "CARGO_CFG_TARGET_HAS_ATOMIC" => "16,32,8,ptr",
                _ => return None,
            };
            Some(value.to_owned())
        };
        for (table, expected) in [
            ("x86_64-unknown-linux-gnu", true),
            ("x86_64-pc-windows-msvc", false),
            ("cfg(unix)", true),
            ("cfg(windows)", false),
            ("cfg(not(windows))", true),
            ("cfg(target_os = \"linux\")", true),
            ("cfg( target_os=\"macos\" )", false),
            ("cfg(target_has_atomic = \"32\")", true),
            ("cfg(target_has_atomic = \"64\")", false),
            (
                "cfg(all(unix, any(target_os = \"macos\", not(windows)),))",
                true,
            ),
            ("cfg(any(windows, all(unix, target_os = \"macos\")))", false),
            ("cfg(all())", true),
            ("cfg(any())", false),
            ("cfg(false)", false),
            // Not conditions.
            ("cfg(not(unix, unix))", true),
            ("cfg(windows windows)", true),
            ("cfg(target_os = windows)", true),
            ("cfg()", true),
        ] {
            assert_eq!(holds(table, &variable), expected, "{table}");
        }
        let deep = format!("cfg({}unix{})", "not(".repeat(5000), ")".repeat(5000));
        assert!(holds(&deep, &variable));
    }
}
