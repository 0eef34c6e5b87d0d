//! Builds that end early: by a compiler that writes half of its output, by a signal, and without Cargo.

use crate::support;

use crate::rebuilds::{CUDA, HIP, image, made, script};
use std::fs;
use std::process::Command;
use std::time::Duration;
use support::package::{CPU, OUT, Package, text};

/// What a compiler does that ends the build: before its work, in it, and after it.
const ENDS: [&str; 3] = [
    "kill -KILL $PPID; exit 1",
    "for last; do :; done; printf half > \"$last\"; kill -KILL $PPID; exit 1",
    "/usr/bin/clang-19 \"$@\"; kill -KILL $PPID; exit 0",
];

#[test]
fn takes_no_output_that_is_cut_off_for_good() {
    let Some(package) = Package::new(CPU) else {
        return;
    };
    // A compiler that succeeds all the same: what is made under the name in `cut` loses its second half.
    let cut = package.at("cut");
    let shim = format!(
        "#!/bin/sh\necho \"$@\" >> '{0}'\n/usr/bin/clang-19 \"$@\" || exit\n[ -e '{1}' ] || exit 0\n\
         for output; do [ \"$last\" = -o ] && case $output in *$(cat '{1}').part) \
         truncate -s $(($(stat -c %s \"$output\") / 2)) \"$output\";; esac; last=$output; done\n",
        package.at("starts").display(),
        cut.display()
    );
    package.put("llvm/bin/clang", &shim);
    let mut build = package.script();
    build.env("OFFLOAD_TARGETS", "x86_64-pc-linux-gnu;gfx90a");
    for name in [
        "gfx90a/kernels-k.c.bc",
        "host/kernels-k.c.o",
        "x86_64-pc-linux-gnu/image",
    ] {
        let _ = fs::remove_dir_all(package.at("target"));
        package.put("cut", name);
        let error = package.fails(&mut build);
        let expected = format!(
            "`target/build/pack-0123/out/offload/kernels/{name}`: its compiler succeeded, but "
        );
        assert!(error.contains(&expected), "{name}: {error}");
        assert!(error.contains("\ncommand: llvm/bin/clang "), "{error}");
        fs::remove_file(&cut).unwrap();
        text(&build.output().unwrap());
    }
}

#[test]
fn takes_nothing_of_an_interrupted_build_for_good() {
    for case in support::share([HIP, CUDA], 1, 2) {
        let Some(package) = case.package() else {
            return;
        };
        let mut script = script(&package);
        script
            .env("NUM_JOBS", "1")
            .env("OFFLOAD_TARGETS", case.targets[0]);
        let (count, _) = made(&package, &mut script);
        let results = || {
            let files = package.files().into_iter();
            let kept = |path: &String| !path.ends_with(".key") && !path.ends_with(".txt");
            let files = files
                .filter(kept)
                .map(|path| (fs::read(&path).unwrap(), path));
            files.collect::<Vec<_>>()
        };
        let good = results();
        let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
        let head = "#!/bin/sh\n[ \"$1\" = --version ] && exec /usr/bin/clang-19 --version\n";
        for number in 0..count {
            // Each start with one of the ends, or with each.
            for end in support::share(ENDS, number % ENDS.len(), ENDS.len()) {
                fs::remove_dir_all(package.at("target")).unwrap();
                // The start of that number ends the build; those before it do their work.
                let left = package.at("left");
                fs::write(&left, "x".repeat(number)).unwrap();
                let (left, work) = (left.display(), "exec /usr/bin/clang-19 \"$@\"");
                let rest = format!("sed -i 's/x//' '{left}'");
                let broken = format!("{head}if [ -s '{left}' ]; then {rest}; {work}; fi\n{end}\n");
                package.put("llvm/bin/clang", &broken);
                let status = script.output().unwrap().status;
                assert!(!status.success(), "{number}: {end}");
                assert!(!package.at(OUT).join("kernels.rs").exists());
                // The same compiler as before, as far as keys can tell.
                package.put("llvm/bin/clang", &shim);
                text(&script.output().unwrap());
                let now = results();
                assert!(now == good, "{number}: {end}");
            }
        }
        // Between an output and its key, and a cut in either.
        let outputs = || {
            let files = package.files().into_iter();
            files.filter_map(|path| Some(path.strip_suffix(".key")?.to_owned()))
        };
        for output in outputs() {
            let key = format!("{output}.key");
            let cut = || fs::write(&output, "half").unwrap();
            let ends: [(&str, &dyn Fn()); 4] = [
                ("cut", &|| cut()),
                ("cut, without a key", &|| {
                    cut();
                    fs::remove_file(&key).unwrap();
                }),
                ("cut, and so is its key", &|| {
                    cut();
                    fs::write(&key, "").unwrap();
                }),
                ("with another key", &|| fs::write(&key, "0123\n").unwrap()),
            ];
            for (name, end) in ends {
                end();
                text(&script.output().unwrap());
                assert!(results() == good, "{output}: {name}");
            }
        }
    }
}

/// Cargo does not end its build script when it is killed.
#[test]
fn waits_for_the_build_script_of_a_cargo_that_was_killed() {
    let Some(package) = HIP.package() else {
        return;
    };
    let mut build = package.script();
    build.env("OFFLOAD_TARGETS", "gfx90a").env("NUM_JOBS", "1");
    build.stdout(std::process::Stdio::null());
    // A compiler that has read the old header, and does not come to an end.
    let at = |name: &str| package.at(name).display().to_string();
    let shim = format!(
        "#!/bin/sh\n/usr/bin/clang-19 \"$@\" || exit\necho \"$@\" >> '{}'\n\
         [ \"$1\" = --version ] && exit\nwhile [ -e '{}' ]; do sleep 0.02; done\n",
        at("starts"),
        at("held")
    );
    package.put("llvm/bin/clang", &shim);
    package.put("held", "");
    let mut cargo = Command::new("sh");
    let variables = build.get_envs();
    let variables = variables.filter_map(|(name, value)| Some((name, value?)));
    cargo.env_clear().envs(variables);
    cargo.stdout(std::process::Stdio::null());
    cargo.args(["-c", "\"$0\"; exit"]).arg(build.get_program());
    cargo.current_dir(package.folder.root());
    let mut cargo = cargo.spawn().unwrap();
    let starts = || fs::read_to_string(package.at("starts")).unwrap_or_default();
    while !starts().contains("-o ") {
        assert!(cargo.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    cargo.kill().unwrap();
    cargo.wait().unwrap();
    package.put("kernels/device.h", "#define TWO 4\n");
    let before = starts();
    let mut new = build.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(starts(), before);
    fs::remove_file(package.at("held")).unwrap();
    assert!(new.wait().unwrap().success());
    // The old one compiles only what it has begun.
    let (count, _) = HIP.all(&HIP.targets[..1]);
    let compiles = |starts: &str| starts.lines().filter(|line| line.contains("-o ")).count();
    assert_eq!(compiles(&starts()), compiles(&before) + count);
    let last = image(&package, "gfx90a");
    fs::remove_dir_all(package.at("target")).unwrap();
    text(&build.stdout(std::process::Stdio::piped()).output().unwrap());
    assert!(last == image(&package, "gfx90a"));
}
