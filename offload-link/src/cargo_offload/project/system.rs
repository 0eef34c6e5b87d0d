//! The operating system, for commands that install something.

use std::fs;

/// Names of this system in install commands, that of its release first; none if commands do not name it.
pub(super) struct System(Vec<&'static str>);

/// Releases with packages of other names: `ID`, `VERSION_ID`, and their names in commands. What Debian tests has no number.
const RELEASES: [(&str, &str, &[&str]); 7] = [
    ("debian", "12", &["Debian 12", "Debian 12, 13"]),
    ("debian", "13", &["Debian 12, 13"]),
    ("debian", "14", &[DEBIAN_14]),
    ("debian", "", &[DEBIAN_14]),
    ("ubuntu", "24.04", &["Ubuntu 24.04, 26.04"]),
    ("ubuntu", "26.04", &[DEBIAN_14, "Ubuntu 24.04, 26.04"]),
    ("ubuntu", "26.10", &["Ubuntu 26.10", DEBIAN_14]),
];

const DEBIAN_14: &str = "Debian 14, Ubuntu 26.04";

impl System {
    /// Reads `/etc/os-release`.
    pub(super) fn of_machine() -> Self {
        Self::of(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    fn of(release: &str) -> Self {
        let values = |name: &str| {
            let mut lines = release.lines();
            let value = lines.find_map(|line| line.strip_prefix(name));
            let value = value.unwrap_or_default().trim_matches('"');
            value.split(' ').filter(|word| !word.is_empty())
        };
        let mut words = values("ID=").chain(values("ID_LIKE="));
        let own = words.find_map(|word| match word {
            "debian" | "ubuntu" => Some("Debian, Ubuntu"),
            "fedora" => Some("Fedora"),
            "arch" => Some("Arch"),
            _ => None,
        });
        let is = |name: &str, value: &str| values(name).eq(value.split_terminator(' '));
        let mut releases = RELEASES.iter();
        let of_release =
            releases.find(|(id, version, _)| is("ID=", id) && is("VERSION_ID=", version));
        let of_release = of_release.map_or(&[] as &[&str], |(.., names)| names);
        Self(of_release.iter().copied().chain(own).collect())
    }

    /// Replaces commands for several systems, `(Debian, Ubuntu: …; Fedora: …)`, by this system's.
    pub(super) fn shortened(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        let mut short = String::new();
        let mut rest = text;
        while let Some((before, commands)) = rest.split_once(" (Debian, Ubuntu: ") {
            let Some((commands, after)) = commands.split_once("`)") else {
                break;
            };
            let all = format!("Debian, Ubuntu: {commands}`");
            let of = |system: &&str| {
                let mut parts = all.split("; ");
                parts.find_map(|part| part.strip_prefix(*system)?.strip_prefix(": "))
            };
            let own = self.0.iter().find_map(of);
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
        let of_release = |release: &str| {
            let text = "install d (Debian, Ubuntu: `apt install d-17`; Debian 14, Ubuntu 26.04: `apt install d-21`; \
                        Ubuntu 26.10: `apt install d-23`; Debian 12: `apt install d`)";
            System::of(release).shortened(text)
        };
        assert_eq!(
            of_release("VERSION_ID=\"12\"\nID=debian\n"),
            "install d: `apt install d`"
        );
        for (release, command) in [
            ("ID=debian\nVERSION_ID=\"13\"\n", "d-17"),
            ("ID=ubuntu\nVERSION_ID=\"24.04\"\n", "d-17"),
            ("ID=ubuntu\nVERSION_ID=\"26.04\"\n", "d-21"),
            ("ID=ubuntu\nVERSION_ID=\"26.10\"\n", "d-23"),
            ("ID=debian\nVERSION_CODENAME=forky\n", "d-21"),
        ] {
            assert_eq!(
                of_release(release),
                format!("install d: `apt install {command}`")
            );
        }
        assert_eq!(
            System::of("ID=debian").shortened("no command (x)"),
            "no command (x)"
        );
    }
}
