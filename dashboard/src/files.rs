//! The files of the page, as they are built in.

const HTML: &str = "text/html; charset=utf-8";
const PICTURE: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Names, media types and texts.
pub(crate) const FILES: &[(&str, &str, &str)] = &[
    ("actions.js", SCRIPT, include_str!("../page/actions.js")),
    ("api.js", SCRIPT, include_str!("../page/api.js")),
    ("app.js", SCRIPT, include_str!("../page/app.js")),
    ("bitfield.js", SCRIPT, include_str!("../page/bitfield.js")),
    ("field.js", SCRIPT, include_str!("../page/field.js")),
    ("format.js", SCRIPT, include_str!("../page/format.js")),
    ("icon.svg", PICTURE, include_str!("../page/icon.svg")),
    ("index.html", HTML, include_str!("../page/index.html")),
    ("plots.js", SCRIPT, include_str!("../page/plots.js")),
    ("speed.js", SCRIPT, include_str!("../page/speed.js")),
    ("style.css", STYLE, include_str!("../page/style.css")),
    ("ui.js", SCRIPT, include_str!("../page/ui.js")),
    ("vendor/hooks.js", SCRIPT, include_str!("../page/vendor/hooks.js")),
    ("vendor/htm.js", SCRIPT, include_str!("../page/vendor/htm.js")),
    ("vendor/preact.js", SCRIPT, include_str!("../page/vendor/preact.js")),
    ("views/api.js", SCRIPT, include_str!("../page/views/api.js")),
    ("views/batch.js", SCRIPT, include_str!("../page/views/batch.js")),
    ("views/fanout.js", SCRIPT, include_str!("../page/views/fanout.js")),
    ("views/fanouts.js", SCRIPT, include_str!("../page/views/fanouts.js")),
    ("views/kinds.js", SCRIPT, include_str!("../page/views/kinds.js")),
    ("views/lanes.js", SCRIPT, include_str!("../page/views/lanes.js")),
    ("views/letters.js", SCRIPT, include_str!("../page/views/letters.js")),
    ("views/overview.js", SCRIPT, include_str!("../page/views/overview.js")),
    ("views/task.js", SCRIPT, include_str!("../page/views/task.js")),
];
