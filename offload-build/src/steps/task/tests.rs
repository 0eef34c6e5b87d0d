use super::*;

/// A folder of its own for one test, with a compiler that counts how often it is started.
struct Bench(PathBuf);

impl Bench {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("offload-task-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let bench = Self(folder);
        bench.put("k.c", "one");
        bench.put("k.h", "header");
        bench
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
        // Older than any command that a test starts.
        let hour = std::time::Duration::from_secs(3600);
        let file = fs::File::options()
            .append(true)
            .open(self.0.join(name))
            .unwrap();
        file.set_modified(SystemTime::now() - hour).unwrap();
    }

    fn task(&self, script: &str) -> Task {
        let at = |name: &str| self.0.join(name);
        let script = format!("cd '{}'; echo x >> starts; {script}", self.0.display());
        Task {
            title: "k.c".into(),
            commands: vec![Command::new("/bin/sh").args(["-c", &script])],
            inner_programs: Vec::new(),
            start: Start::Plain,
            inputs: vec![at("k.c")],
            depfile: Some(at("k.d")),
            cargo_folder: None,
            output: at("k.out"),
            joined: Vec::new(),
            finish: Finish::None,
            environment: String::new(),
            hints: SymbolHints::default(),
            order_loss: None,
        }
    }

    fn good(&self) -> Task {
        let deps = format!("printf 'out: {0}/k.c {0}/k.h\\n' > k.d", self.0.display());
        self.task(&format!("cat k.c k.h > k.out.part; {deps}"))
    }

    /// Runs the task as a new build would, and says how many commands have been started by now.
    fn starts_after(&self, task: &Task) -> usize {
        let _ = task.run(&Digests::default());
        fs::read_to_string(self.0.join("starts"))
            .unwrap()
            .lines()
            .count()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The error of a task that fails, with its hint.
fn failure(task: &Task) -> String {
    match task.run(&Digests::default()).unwrap_err() {
        Failure::Command(error, hint) if hint.is_empty() => error.to_string(),
        Failure::Command(error, hint) => format!("{error}\nhint: {hint}"),
        Failure::Other(error) => error.to_string(),
    }
}

#[test]
fn starts_nothing_when_nothing_changed() {
    let bench = Bench::new("fresh");
    assert_eq!(bench.starts_after(&bench.good()), 1);
    assert_eq!(bench.starts_after(&bench.good()), 1);
    assert!(bench.good().run(&Digests::default()).unwrap().fresh);
}

#[test]
fn runs_again_for_a_changed_header_argument_variable_or_lost_output() {
    let bench = Bench::new("changed");
    assert_eq!(bench.starts_after(&bench.good()), 1);
    bench.put("k.h", "HEADER");
    assert_eq!(bench.starts_after(&bench.good()), 2);
    let mut other = bench.good();
    other.environment = "CPATH=/x".into();
    assert_eq!(bench.starts_after(&other), 3);
    other.commands[0] = other.commands[0].clone().arg("-g");
    assert_eq!(bench.starts_after(&other), 4);
    fs::remove_file(&other.output).unwrap();
    assert_eq!(bench.starts_after(&other), 5);
    assert_eq!(bench.starts_after(&other), 5);
    fs::write(&other.output, "one").unwrap();
    assert_eq!(bench.starts_after(&other), 6, "an output cut short");
    assert_eq!(bench.starts_after(&other), 6);
}

/// Clang and nvcc write `/` for a backslash, and a tab as it is.
#[cfg(unix)]
#[test]
fn starts_nothing_again_in_a_folder_whose_name_has_a_backslash_or_a_tab() {
    for (number, name) in ["back\\slash", "ta\tb"].into_iter().enumerate() {
        let bench = Bench::new(&format!("names-{number}"));
        fs::create_dir(bench.0.join(name)).unwrap();
        bench.put(&format!("{name}/k.h"), "header");
        let written = bench.0.join(name.replace('\\', "/"));
        let deps = format!("printf 'out: %s' '{}/k.h' > k.d", written.display());
        let task = Task {
            output: bench.0.join(name).join("k.out"),
            ..bench.task(&format!("cat k.c > '{name}/k.out.part'; {deps}"))
        };
        assert_eq!(bench.starts_after(&task), 1);
        assert_eq!(bench.starts_after(&task), 1, "{name}");
        bench.put(&format!("{name}/k.h"), "other");
        assert_eq!(bench.starts_after(&task), 2, "{name}");
    }
}

#[test]
fn takes_no_empty_dependency_file_for_one_of_a_compile() {
    let bench = Bench::new("no-names");
    for text in ["", "out: "] {
        let task = bench.task(&format!("cat k.c > k.out.part; printf '{text}' > k.d"));
        let error = failure(&task);
        let expected = format!(
            "{}: this dependency file names no files [OFF509]\nhint: ",
            bench.0.join("k.d").display()
        );
        assert!(error.starts_with(&expected), "{error}");
        assert!(!bench.0.join("k.out.key").exists());
    }
}

#[test]
fn runs_a_command_that_is_longer_than_the_kernel_accepts() {
    let bench = Bench::new("long");
    let at = |name: &str| bench.0.join(name);
    let deep = at(&["d"; 12].map(|letter| letter.repeat(240)).join("/"));
    fs::create_dir_all(&deep).unwrap();
    bench.put("e.c", "");
    let compile = Command::new("cc").arg("-c").arg(at("e.c"));
    let object = deep.join("e.o");
    compile.arg("-o").arg(&object).run().unwrap();
    let link = Command::new("cc").args(["-r", "-nostdlib", "-o"]);
    let link = link.arg(at("k.out.part")).args(vec![object; 1000]);
    let task = Task {
        commands: vec![link],
        depfile: None,
        ..bench.good()
    };
    task.run(&Digests::default()).unwrap();
    assert!(at("k.out").is_file());
    assert!(!at("k.out.rsp").exists());
}

#[test]
fn tells_a_file_that_cannot_be_written_from_a_command_that_failed() {
    let bench = Bench::new("unwritten");
    let task = bench.task("mkdir k.out; cat k.c > k.out.part; echo 'out: k.c' > k.d");
    let error = failure(&task);
    assert!(error.contains(" (os error "), "{error}");
    assert!(error.ends_with(") [OFF509]"), "{error}");
}

#[test]
fn keeps_nothing_of_a_command_that_failed() {
    let bench = Bench::new("failed");
    let bad = bench.task("echo half > k.out.part; exit 1");
    let error = failure(&bad);
    let expected = "`/bin/sh` failed (exit status: 1)";
    assert!(error.starts_with(expected), "{error}");
    for name in ["k.out", "k.out.part", "k.out.key"] {
        assert!(!bench.0.join(name).exists(), "{name} is left");
    }
    assert_eq!(
        bench.starts_after(&bad),
        2,
        "a failure is not remembered as a result"
    );
}

#[test]
fn hints_at_undefined_symbols_that_the_program_tells_of() {
    let bench = Bench::new("undefined");
    let fails = |script: &str| {
        let mut task = bench.task(script);
        task.hints.undefined = "elsewhere";
        failure(&task)
    };
    let error = fails("echo 'undefined symbol: f' >&2; exit 1");
    assert!(
        error.contains("\nundefined symbol: f\ncommand: "),
        "{error}"
    );
    assert!(error.ends_with("\nhint: elsewhere [OFF701]"), "{error}");
    // Its command line is not what it tells.
    let error = fails("exit 1 # --no-undefined");
    assert!(!error.contains("hint"), "{error}");
    // Nor is that of a linker that crashes.
    let error = fails("echo 'Program arguments: ld.lld --no-undefined' >&2; exit 1");
    assert!(!error.contains("hint"), "{error}");
}

/// Messages of ptxas and nvlink 13.5, and of nvcc's front end.
#[test]
fn says_the_declaration_of_an_undefined_function() {
    let hints = SymbolHints {
        undefined: "define it",
        ..SymbolHints::default()
    };
    let ptxas = "ptxas fatal   : Unresolved extern function '_Z6helperiPf'\n";
    assert_eq!(
        hints.of(ptxas),
        "`_Z6helperiPf` is `helper(int, float*)`; define it [OFF701]"
    );
    let nvlink = |symbol: &str| {
        format!("nvlink error   : Undefined reference to '{symbol}' in '_Zk.cubin'\n")
    };
    assert_eq!(
        hints.of(&[nvlink("_Z1fi"), nvlink("_ZN1n1fIiEET_S1_"), nvlink("_Z1fi")].concat()),
        "`_Z1fi` is `f(int)`, `_ZN1n1fIiEET_S1_` is `int n::f<int>(int)`; define it [OFF701]"
    );
    let many: String = (0..8)
        .map(|number| nvlink(&format!("_Z2f{number}v")))
        .collect();
    let hint = hints.of(&many);
    assert!(
        hint.contains("`_Z2f4v` is `f4()`, 3 more; define it"),
        "{hint}"
    );
    assert_eq!(hints.of(&nvlink("plain")), "define it [OFF701]");
    // Of lld 22 and nvlink 13.5, for a `static` variable and one of an anonymous namespace. A warning about a `static` kernel is
    // another matter.
    let lld = "ld.lld: error: undefined symbol: (anonymous namespace)::count\n".to_owned();
    for output in [nvlink("_ZL5count"), nvlink("_ZN12_GLOBAL__N_15countE"), lld] {
        let hint = hints.of(&output);
        assert!(hint.contains("clang renames a `static` variable"), "{hint}");
    }
    let stack =
        "ptxas warning : Stack size for entry function '_ZL1kPi' cannot be statically determined\n";
    assert_eq!(hints.of(&(nvlink("plain") + stack)), "define it [OFF701]");
    assert_eq!(SymbolHints::default().of(ptxas), "");
    assert_eq!(
        hints.of("k.cu(1): error: identifier \"f\" is undefined\n"),
        ""
    );
}

#[test]
fn chooses_the_hint_for_what_ptx_does_not_define() {
    let hints = SymbolHints {
        undefined: "define it",
        library: Some((&["__nv_"], "install it [OFF605]".to_owned())),
        others: &[("__cudaCDP2", "use another compiler")],
        ..SymbolHints::default()
    };
    let of = |names: [&str; 2]| hints.of_names(&names.map(str::to_owned)).to_owned();
    assert_eq!(of(["_Z1fi", "g"]), "define it");
    assert_eq!(of(["_Z1fi", "__nv_sinf"]), "install it [OFF605]");
    // As lld has it for headers of ROCm 5.2 and clang 19.
    let intrinsic = "ld.lld: error: undefined symbol: llvm.amdgcn.atomic.inc.i32.p0i32\n";
    let hint = hints.of(intrinsic);
    assert!(
        hint.starts_with("the LLVM of this clang has no such intrinsic: ")
            && hint.ends_with(" [OFF701]"),
        "{hint}"
    );
    assert_eq!(
        of(["__cudaCDP2GetParameterBuffer", "g"]),
        "use another compiler"
    );
}

#[test]
fn runs_without_a_launcher_that_leaves_no_dependencies() {
    let bench = Bench::new("launched");
    assert_eq!(bench.starts_after(&bench.good()), 1);
    bench.put("k.c", "two");
    // As a cache that does not know the file: what an earlier run wrote lies there.
    let launched = bench.task("cat k.c k.h > k.out.part").commands;
    let mut task = bench.good();
    task.start = Start::Launched(Launched { commands: launched });
    let done = task.run(&Digests::default()).unwrap();
    let folder = bench.0.display();
    let problem = format!("compiled without the launcher: it gave no `{folder}/k.d`\n");
    assert!(done.messages.contains(&problem), "{}", done.messages);
    assert_eq!(bench.starts_after(&task), 3);
    // With and without it the output is the same.
    assert_eq!(bench.starts_after(&bench.good()), 3);
    task.start = Start::Launched(Launched {
        commands: bench.good().commands,
    });
    bench.put("k.c", "three");
    assert_eq!(task.run(&Digests::default()).unwrap().messages, "");
    assert_eq!(bench.starts_after(&task), 4);
}

#[test]
fn does_not_trust_an_input_that_changed_meanwhile() {
    let bench = Bench::new("meanwhile");
    let deps = format!("printf 'out: {}/k.h\\n' > k.d", bench.0.display());
    let racing = bench.task(&format!(
        "cat k.h > k.out.part; sleep 0.05; echo later > k.h; {deps}"
    ));
    assert_eq!(bench.starts_after(&racing), 1);
    assert_eq!(bench.starts_after(&racing), 2);
}

#[test]
fn writes_a_file_only_when_it_differs() {
    let bench = Bench::new("write");
    let path = bench.0.join("deep/k.rs");
    files::write(&path, b"one").unwrap();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    files::write(&path, b"one").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    files::write(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    let folder = bench.0.join("deep");
    assert!(
        files::write(&folder, b"x").is_err(),
        "a folder is not replaced"
    );
    assert!(!files::part(&folder).exists());
}

#[test]
fn keeps_no_key_that_lacks_a_file() {
    let bench = Bench::new("unreadable");
    // It is there, and its content cannot be read: as a file without permission is. It is as old as the first question.
    let unreadable = Path::new("/proc/self/mem");
    assert!(fs::metadata(unreadable).is_ok() && fs::read(unreadable).is_err());
    let deps = format!(
        "printf 'out: {}/k.c {}\\n' > k.d",
        bench.0.display(),
        unreadable.display()
    );
    let task = bench.task(&format!("cat k.c > k.out.part; {deps}"));
    assert_eq!(bench.starts_after(&task), 1);
    assert_eq!(bench.starts_after(&task), 2);
}

#[test]
fn keeps_a_key_of_a_folder_with_links() {
    let bench = Bench::new("links");
    let at = |name: &str| bench.0.join(name);
    for folder in ["data", "elsewhere"] {
        fs::create_dir(at(folder)).unwrap();
    }
    bench.put("elsewhere/file", "one");
    std::os::unix::fs::symlink(at("elsewhere"), at("data/far")).unwrap();
    // The lock of an editor.
    std::os::unix::fs::symlink("user@host.1", at("data/.#lock")).unwrap();
    let deps = format!("printf 'out: {}\\n' > k.d", at("data").display());
    let task = bench.task(&format!("cat data/far/file > k.out.part; {deps}"));
    assert_eq!(bench.starts_after(&task), 1);
    assert_eq!(bench.starts_after(&task), 1);
    bench.put("elsewhere/file", "two");
    assert_eq!(bench.starts_after(&task), 2);
    assert_eq!(fs::read_to_string(at("k.out")).unwrap(), "two");
}
