//! The example of two lists that overlap, with a part of its recipients: it checks by itself who got what.

use std::path::Path;
use std::process::Command;

#[test]
fn everybody_on_two_lists_gets_one_mail() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/mailing/run.py");
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.csv");
    let arguments = ["--fanfold", env!("CARGO_BIN_EXE_fanfold"), "--every", "25", "--list", list.to_str().unwrap()];
    let run =
        Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").arg(example).args(arguments).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{said}{errors}");
    assert!(said.contains("1,260 recipients, 421 of them on both lists"), "{said}");
    let list = std::fs::read_to_string(list).unwrap();
    assert!(list.starts_with("recipient,lists,content,outcome\r\n") && list.lines().count() == 1_261, "{list}");
    assert!(said.ends_with("Nobody got two mails, and nobody was left out.\n"), "{said}");
}
