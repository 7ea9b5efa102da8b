//! Folders that the command line names.

use std::path::Path;

use crate::fault::Fault;

/// What is wrong with a file where a folder is expected.
pub(crate) const IS_A_FILE: &str = "is a file, a folder is expected";

/// The part of a path that is there and is no folder: nothing can be kept below it.
pub(crate) fn no_folder(path: &Path) -> Option<&Path> {
    path.ancestors().find(|part| part.metadata().is_ok_and(|about| !about.is_dir()))
}

/// Refuses a folder of data that is a file, or below one.
pub(crate) fn check_data(data: Option<&Path>) -> Result<(), Fault> {
    match data.and_then(no_folder) {
        Some(file) => Err(Fault::new("--data", format_args!("`{}` {IS_A_FILE}", file.display()))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::no_folder;

    #[test]
    fn only_what_is_there_and_is_a_file_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.csv");
        std::fs::write(&file, "").unwrap();
        assert_eq!(no_folder(&file), Some(file.as_path()));
        assert_eq!(no_folder(&file.join("data")), Some(file.as_path()));
        assert_eq!(no_folder(folder.path()), None);
        assert_eq!(no_folder(&folder.path().join("new/data")), None);
        assert_eq!(no_folder("new".as_ref()), None);
    }
}
