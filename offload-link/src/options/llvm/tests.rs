#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use super::*;

const ROWS: &[Row<u8>] = &[
    row(0, "type", Takes::Text("string"), HelpGroup::Tool),
    row(1, "list", Takes::BoolOr(&["long"]), HelpGroup::Tool),
    row(2, "align", Takes::Uint("uint"), HelpGroup::Tool),
    row(3, "level", Takes::Int("n"), HelpGroup::Tool),
    row(4, "targets", Takes::Texts("string"), HelpGroup::Ours),
    row(5, "h", Takes::Bool, HelpGroup::Unlisted),
];

const fn row(id: u8, name: &'static str, takes: Takes, group: HelpGroup) -> Row<u8> {
    Row {
        id,
        name,
        takes,
        group,
        help: "first line\nsecond line",
    }
}

const TABLE: Table<u8> = Table {
    rows: ROWS,
    required: &["type"],
    positional: 0,
};

fn parse(args: &[&str]) -> Parsed<u8> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let started = Started {
        path: "dir/tool",
        base: "tool",
    };
    TABLE.parse(&args, &started)
}

#[test]
fn reads_both_dashes_and_both_places_of_a_value() {
    let text = |text: &str| Value::Text(text.into());
    for (args, expected) in [
        (&["-type=a"][..], vec![(0, text("a"))]),
        (&["--type", "-list"], vec![(0, text("-list"))]),
        (&["-type", ""], vec![(0, text(""))]),
        (&["-type="], vec![(0, text(""))]),
        (
            &["-type=a=b", "--list", "-list=0"],
            vec![
                (0, text("a=b")),
                (1, Value::Bool(true)),
                (1, Value::Bool(false)),
            ],
        ),
        (
            &["-type=a", "-list=long"],
            vec![(0, text("a")), (1, text("long"))],
        ),
        (
            &["-type=a", "-targets=x,", "-targets", "y"],
            vec![
                (0, text("a")),
                (4, text("x")),
                (4, text("")),
                (4, text("y")),
            ],
        ),
        (
            &["-type=a", "-align=0x10", "-align=010", "-align=0b11"],
            vec![
                (0, text("a")),
                (2, Value::Uint(16)),
                (2, Value::Uint(8)),
                (2, Value::Uint(3)),
            ],
        ),
        (
            &["-type=a", "-level=-7"],
            vec![(0, text("a")), (3, Value::Int(-7))],
        ),
    ] {
        let parsed = parse(args);
        assert_eq!(parsed.mistakes, [""; 0], "{args:?}");
        assert_eq!(parsed.values, expected, "{args:?}");
    }
}

/// The texts are those of `clang-offload-bundler` 22.1.
#[test]
fn says_every_mistake() {
    let missing = "tool: for the --type option: must be specified at least once!";
    let unknown =
        |arg| format!("tool: Unknown command line argument '{arg}'.  Try: 'dir/tool --help'");
    let meant = |arg, option| format!("{}\ntool: Did you mean '{option}'?", unknown(arg));
    for (args, expected) in [
        (&["extra"][..], vec![unknown("extra"), missing.into()]),
        (&["-"], vec![unknown("-"), missing.into()]),
        (&["", "-type=o"], vec![unknown("")]),
        (&["--", "-type=o"], vec![unknown("-type=o"), missing.into()]),
        (&["---type=o"], vec![meant("---type=o", "--type=o"), missing.into()]),
        (&["-typ=o"], vec![meant("-typ=o", "--type=o"), missing.into()]),
        (&["-type=o", "-lis"], vec![meant("-lis", "--list")]),
        (&["-type=o", "-typeo"], vec![meant("-typeo", "--type")]),
        (
            &["-type"],
            vec!["tool: for the --type option: requires a value!".into(), missing.into()],
        ),
        (
            &["-type=o", "-align=abc", "-align=-1", "-align=", "-align=4294967296"],
            ["abc", "-1", "", "4294967296"]
                .map(|text| {
                    format!("tool: for the --align option: '{text}' value invalid for uint argument!")
                })
                .to_vec(),
        ),
        (
            &["-type=o", "-level=x", "-level=99999999999"],
            ["x", "99999999999"]
                .map(|text| {
                    format!("tool: for the --level option: '{text}' value invalid for integer argument!")
                })
                .to_vec(),
        ),
        (
            &["-type=o", "-list=yes"],
            vec!["tool: for the --list option: 'yes' is invalid value for boolean argument! Try 0 or 1".into()],
        ),
        (
            &["-type=o", "-help=1"],
            vec!["tool: for the --help option: does not allow a value! '1' specified.".into()],
        ),
    ] {
        assert_eq!(parse(args).mistakes, expected, "{args:?}");
    }
}

/// The texts are those of `llvm-offload-binary` 22.1.
#[test]
fn takes_positional_arguments_and_letters() {
    const ROWS: &[Row<u8>] = &[
        row(0, "o", Takes::Text("file"), HelpGroup::Tool),
        row(1, "image", Takes::Text("x"), HelpGroup::Tool),
    ];
    let table = Table {
        rows: ROWS,
        required: &[],
        positional: 1,
    };
    let started = Started {
        path: "./tool",
        base: "tool",
    };
    let parse = |args: &[&str]| {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        table.parse(&args, &started)
    };
    for args in [&["-o", "f", "-"], &["--o=f", "--", "-o"]] {
        let parsed = parse(args);
        assert_eq!(parsed.mistakes, [""; 0]);
        assert_eq!(parsed.values, [(0, Value::Text("f".into()))]);
        assert_eq!(parsed.positional, [args[2]]);
    }
    for (args, expected) in [
        (
            &["a", "--", "-o"][..],
            "tool: Too many positional arguments specified!\n\
             Can specify at most 1 positional arguments: See: ./tool --help",
        ),
        (&["-o"], "tool: for the -o option: requires a value!"),
        (
            &["-of"],
            "tool: for the -o option: may not occur within a group!\n\
             tool: Unknown command line argument '-of'.  Try: './tool --help'\n\
             tool: Did you mean '-o'?",
        ),
        (
            &["--bogus"],
            "tool: Unknown command line argument '--bogus'.  Try: './tool --help'\n\
             tool: Did you mean '-o'?",
        ),
        (
            &["-imag=a"],
            "tool: Unknown command line argument '-imag=a'.  Try: './tool --help'\n\
             tool: Did you mean '--image=a'?",
        ),
    ] {
        assert_eq!(parse(args).mistakes, [expected]);
    }
    let help = table.help(Answer::Help, "tool", ("", ""));
    assert!(
        help.contains("\n  --image=<x> - first") && help.contains("\n  -o <file>   - first"),
        "{help}"
    );
}

#[test]
fn answers_at_once() {
    let parsed = parse(&["-zzz", "-help", "-version"]);
    assert_eq!(
        (parsed.answer, parsed.mistakes.len()),
        (Some(Answer::Help), 1)
    );
    assert_eq!(parse(&["--version"]).answer, Some(Answer::Version));
    assert_eq!(parse(&["-type", "--version"]).answer, None);
}

#[test]
fn lists_every_option_once() {
    for (which, count) in [(Answer::Help, 8), (Answer::HelpListHidden, 10)] {
        let help = TABLE.help(which, "tool", ("type", "\n  a - b"));
        let names = help.lines().filter(|line| line.starts_with("  --"));
        assert_eq!(names.count(), count, "{help}");
    }
    let help = TABLE.help(Answer::Help, "tool", ("", ""));
    let column = help.find("  --list ").unwrap();
    assert!(help[column..].contains(" - first line\n  "), "{help}");
    assert!(
        help.contains("Beyond LLVM's tool:\n\n  --targets=<string>"),
        "{help}"
    );
}
