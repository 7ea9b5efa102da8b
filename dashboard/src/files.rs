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
    ("boundary.js", SCRIPT, include_str!("../page/boundary.js")),
    ("field.js", SCRIPT, include_str!("../page/field.js")),
    ("format.js", SCRIPT, include_str!("../page/format.js")),
    ("icon.svg", PICTURE, include_str!("../page/icon.svg")),
    ("index.html", HTML, include_str!("../page/index.html")),
    ("plots.js", SCRIPT, include_str!("../page/plots.js")),
    ("reissue.js", SCRIPT, include_str!("../page/reissue.js")),
    ("rows.js", SCRIPT, include_str!("../page/rows.js")),
    ("selection.js", SCRIPT, include_str!("../page/selection.js")),
    ("speed.js", SCRIPT, include_str!("../page/speed.js")),
    ("style.css", STYLE, include_str!("../page/style.css")),
    ("switches.js", SCRIPT, include_str!("../page/switches.js")),
    ("ui.js", SCRIPT, include_str!("../page/ui.js")),
    ("waiting.js", SCRIPT, include_str!("../page/waiting.js")),
    ("wrong.js", SCRIPT, include_str!("../page/wrong.js")),
    ("vendor/hooks.js", SCRIPT, include_str!("../page/vendor/hooks.js")),
    ("vendor/htm.js", SCRIPT, include_str!("../page/vendor/htm.js")),
    ("vendor/preact.js", SCRIPT, include_str!("../page/vendor/preact.js")),
    ("views/api.js", SCRIPT, include_str!("../page/views/api.js")),
    ("views/attention.js", SCRIPT, include_str!("../page/views/attention.js")),
    ("views/batch.js", SCRIPT, include_str!("../page/views/batch.js")),
    ("views/fanout.js", SCRIPT, include_str!("../page/views/fanout.js")),
    ("views/fanouts.js", SCRIPT, include_str!("../page/views/fanouts.js")),
    ("views/item.js", SCRIPT, include_str!("../page/views/item.js")),
    ("views/kinds.js", SCRIPT, include_str!("../page/views/kinds.js")),
    ("views/lanes.js", SCRIPT, include_str!("../page/views/lanes.js")),
    ("views/letters.js", SCRIPT, include_str!("../page/views/letters.js")),
    ("views/overview.js", SCRIPT, include_str!("../page/views/overview.js")),
    ("views/producer.js", SCRIPT, include_str!("../page/views/producer.js")),
    ("views/task.js", SCRIPT, include_str!("../page/views/task.js")),
];
