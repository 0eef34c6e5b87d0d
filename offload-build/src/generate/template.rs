//! Templates: text with places, `$name$`, that values fill.

/// Returns `template` with each place filled by the value of its name. Values are copied as they are: what looks like a
/// place in one of them is not replaced.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut parts = template.split('$');
    let mut text = parts
        .next()
        .expect("a split text has a first part")
        .to_owned();
    while let Some(name) = parts.next() {
        let value = values.iter().find(|(known, _)| *known == name);
        let (_, value) = value.expect("each place of a template has a value");
        text += value;
        text += parts.next().expect("a place of a template ends with `$`");
    }
    text
}
