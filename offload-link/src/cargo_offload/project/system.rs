//! The operating system, for commands that install something.

use std::fs;

/// Name of this system in install commands; `None` if they do not name it.
pub(super) struct System(Option<&'static str>);

impl System {
    /// Reads `/etc/os-release`.
    pub(super) fn of_machine() -> Self {
        Self::of(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    fn of(release: &str) -> Self {
        let mut words = release
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
            .flat_map(|value| value.trim_matches('"').split(' '));
        Self(words.find_map(|word| match word {
            "debian" | "ubuntu" => Some("Debian, Ubuntu"),
            "fedora" => Some("Fedora"),
            "arch" => Some("Arch"),
            _ => None,
        }))
    }

    /// Replaces commands for several systems, `(Debian, Ubuntu: …; Fedora: …)`, by this system's.
    pub(super) fn shortened(&self, text: &str) -> String {
        let Some(system) = self.0 else {
            return text.to_owned();
        };
        let mut short = String::new();
        let mut rest = text;
        while let Some((before, commands)) = rest.split_once(" (Debian, Ubuntu: ") {
            let Some((commands, after)) = commands.split_once("`)") else {
                break;
            };
            let all = format!("Debian, Ubuntu: {commands}`");
            let mut parts = all.split("; ");
            let own = parts.find_map(|part| part.strip_prefix(system)?.strip_prefix(": "));
            short += before;
            match own {
                Some(command) => short += &format!(": {command}"),
                None => short += &format!(" ({all})"),
            }
            rest = after;
        }
        short + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "install lld (Debian, Ubuntu: `apt install lld-22`; Fedora: `dnf install lld`; Arch: `pacman -S \
                        lld`), or set X; install spirv (Debian, Ubuntu: `apt install s`)";

    #[test]
    fn keeps_the_command_of_this_system() {
        let short = |release: &str| System::of(release).shortened(TEXT);
        assert_eq!(
            short("NAME=x\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
            "install lld: `apt install lld-22`, or set X; install spirv: `apt install s`"
        );
        assert_eq!(
            short("ID=fedora\n"),
            "install lld: `dnf install lld`, or set X; install spirv (Debian, Ubuntu: `apt install s`)"
        );
        assert_eq!(short("ID=nixos\n"), TEXT);
        assert_eq!(
            System::of("ID=debian").shortened("no command (x)"),
            "no command (x)"
        );
    }
}
