//! The treemap with a table of all images, which sorts by a click on a column.

use std::fmt::Write as _;

use offload_formats::escape::terminal;

use super::measure::MeasuredFile;
use super::svg::{self, escaped};
use crate::cargo_offload::kernels::shown_name;
use crate::cargo_offload::text;

const HEAD: &str = "\
<!doctype html>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<style>
:root{color-scheme:light dark}
body{font:14px system-ui,sans-serif;margin:16px;max-width:1240px}
svg{width:100%;height:auto}
table{border-collapse:collapse;margin-top:12px}
th,td{padding:3px 10px;text-align:left;border-bottom:1px solid #8884}
th{cursor:pointer;user-select:none}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
</style>
";

/// Sorts by the clicked column; a second click reverses the order.
const SCRIPT: &str = "\
<script>
document.querySelectorAll('th').forEach(head => head.onclick = () => {
  const body = head.closest('table').tBodies[0], column = head.cellIndex;
  const value = row => row.cells[column].dataset.v;
  const up = head.dataset.up = head.dataset.up === '1' ? '0' : '1';
  const compare = (a, b) => head.classList.contains('n') ? a - b : a < b ? -1 : a > b ? 1 : 0;
  [...body.rows].sort((a, b) => (up === '1' ? 1 : -1) * compare(value(a), value(b)))
    .forEach(row => body.append(row));
});
</script>
";

/// Returns the page.
pub(super) fn page(file: &MeasuredFile) -> String {
    let name = escaped(&file.name);
    let mut html = format!("{HEAD}<title>{name}</title>\n{}", svg::draw(file));
    html += "<table><thead><tr><th class=\"n\">image</th><th>target</th><th>form</th><th>container</th>\
             <th class=\"n\">in the file</th><th class=\"n\">unpacked</th></tr></thead>\n<tbody>\n";
    for container in &file.containers {
        let place = escaped(&container.place);
        for image in &container.images {
            let target = escaped(&image.target);
            let (number, form) = (image.number, image.form);
            let _ = writeln!(
                html,
                "<tr><td class=\"n\" data-v=\"{number}\">{number}</td><td data-v=\"{target}\">{target}</td>\
                 <td data-v=\"{form}\">{form}</td><td data-v=\"{place}\">{place}</td>{}{}</tr>",
                cell(image.stored),
                cell(image.unpacked)
            );
        }
    }
    html += "</tbody></table>\n";
    if let Some(kernels) = &file.kernels {
        html += "<table><thead><tr><th>kernel</th><th class=\"n\">images</th><th class=\"n\">code</th></tr></thead>\n<tbody>\n";
        for kernel in kernels {
            let name = escaped(&terminal(&shown_name(&kernel.symbol)).to_string());
            let images = kernel.images;
            let _ = writeln!(
                html,
                "<tr><td data-v=\"{name}\">{name}</td><td class=\"n\" data-v=\"{images}\">{images}</td>{}</tr>",
                cell(kernel.code_size)
            );
        }
        html += "</tbody></table>\n";
    }
    html += SCRIPT;
    html
}

fn cell(bytes: u64) -> String {
    let shown = text::size(bytes);
    format!("<td class=\"n\" data-v=\"{bytes}\">{shown}</td>")
}
