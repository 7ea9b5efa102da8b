//! Least privilege: what a function asks for is what `template.yaml` allows it. That it is allowed no more shows over
//! thousands of seeds only: `--covered` of the binary.

use fanfold_simulation::Permissions;

use crate::runs;

#[test]
fn functions_are_allowed_what_they_do() {
    let permissions = Permissions::compare(&runs().stats).unwrap();
    assert!(permissions.missing.is_empty(), "the template does not allow {:?}", permissions.missing);
}
