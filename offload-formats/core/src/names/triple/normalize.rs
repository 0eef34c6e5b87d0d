//! Moves the words that LLVM knows to their fields: `docs/differences.md#triples`.

use super::words;

/// Meaning of a field of a triple, in the order of the fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Arch,
    Vendor,
    Os,
    Environment,
}

const ROLES: [Role; 4] = [Role::Arch, Role::Vendor, Role::Os, Role::Environment];

/// Returns the fields in LLVM's order, none of them empty.
pub(super) fn normalize(text: &str) -> Vec<String> {
    let mut fields: Vec<String> = text.split('-').map(str::to_owned).collect();
    let mut fixed = [false; 4];
    for (role, fixed) in ROLES.into_iter().zip(&mut fixed) {
        let field = fields.get(role as usize);
        *fixed = field.is_some_and(|word| is_known(role, word, Moved::No));
    }
    for role in ROLES {
        let place = role as usize;
        if fixed.get(place) == Some(&true) {
            continue;
        }
        let is_fixed = |index: usize| fixed.get(index) == Some(&true);
        let found = fields
            .iter()
            .enumerate()
            .find(|(index, word)| !is_fixed(*index) && is_known(role, word, Moved::Yes));
        let Some((mut from, _)) = found else { continue };
        if from > place {
            let word = std::mem::take(&mut fields[from]);
            insert(&mut fields, place, word, is_fixed);
        }
        while from < place {
            // Inserts an empty field before the word, which moves it to the right with the fields
            // after it.
            insert(&mut fields, from, String::new(), is_fixed);
            from = (from + 1..)
                .find(|index| !is_fixed(*index))
                .unwrap_or(place);
        }
        if let Some(fixed) = fixed.get_mut(place) {
            *fixed = true;
        }
    }
    if let ([true, false, false, true], [_, vendor, os, _, ..]) = (fixed, fields.as_mut_slice()) {
        if vendor == "none" && os.is_empty() {
            std::mem::swap(vendor, os);
        }
    }
    for field in fields.iter_mut().filter(|field| field.is_empty()) {
        "unknown".clone_into(field);
    }
    rename(&mut fields);
    fields
}

/// Puts `word` at `place`. The word there moves to the next field that is not fixed, and so on
/// until one replaces an empty field.
fn insert(fields: &mut Vec<String>, place: usize, word: String, fixed: impl Fn(usize) -> bool) {
    let (mut carried, mut first) = (word, true);
    for index in (place..).filter(|index| !fixed(*index)) {
        if carried.is_empty() && !first {
            return;
        }
        first = false;
        match fields.get_mut(index) {
            Some(field) => std::mem::swap(field, &mut carried),
            None => {
                fields.resize(index, String::new());
                fields.push(carried);
                return;
            }
        }
    }
}

/// Replaces spellings that depend on several fields.
fn rename(fields: &mut Vec<String>) {
    let field = |role: Role| fields.get(role as usize).map_or("", String::as_str);
    let (vendor, environment) = (field(Role::Vendor), field(Role::Environment));
    if let Some(version) = environment.strip_prefix("androideabi") {
        let version = format!("android{version}");
        set(fields, Role::Environment, &version);
    } else if vendor == "suse" && environment == "gnueabi" {
        set(fields, Role::Environment, "gnueabihf");
    }
    let field = |role: Role| fields.get(role as usize).map_or("", String::as_str);
    let (os, environment) = (field(Role::Os), field(Role::Environment));
    let starts = |words: [&str; 2]| words.iter().any(|word| os.starts_with(word));
    let environment = if starts(["windows", "win32"]) {
        let known = is_known(Role::Environment, environment, Moved::Yes);
        if known {
            environment.to_owned()
        } else {
            "msvc".to_owned()
        }
    } else if os.starts_with("mingw") {
        "gnu".to_owned()
    } else if os.starts_with("cygwin") {
        "cygnus".to_owned()
    } else {
        return;
    };
    fields.truncate(ROLES.len());
    set(fields, Role::Os, "windows");
    set(fields, Role::Environment, &environment);
}

fn set(fields: &mut Vec<String>, role: Role, text: &str) {
    let place = role as usize;
    fields.resize(fields.len().max(place + 1), "unknown".to_owned());
    if let Some(field) = fields.get_mut(place) {
        text.clone_into(field);
    }
}

/// Tells whether the word is a candidate for another field; then more words count as known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    No,
    Yes,
}

fn is_known(role: Role, word: &str, moved: Moved) -> bool {
    match role {
        Role::Arch => words::arch(word).is_some(),
        Role::Vendor => words::vendor(word).is_some(),
        Role::Os => {
            let alias = ["mingw", "cygwin"].iter().any(|os| word.starts_with(os));
            words::os(word).is_some() || (moved == Moved::Yes && alias)
        }
        Role::Environment => {
            let format = words::object_format(word).is_some();
            words::environment(word).is_some() || (moved == Moved::Yes && format)
        }
    }
}
