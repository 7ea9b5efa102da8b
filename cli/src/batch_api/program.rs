//! Whether a program can be executed. Asked before it is needed.

use std::path::{Path, PathBuf};

/// Bytes of a script's first line that are looked at; systems read no more of it.
const SHEBANG_BYTES: usize = 255;

/// Checks that the program of a command can be run in `folder`. It is looked for where the operating system does. The error
/// says what is wrong.
pub(crate) fn check(command: &[String], folder: &Path) -> Result<(), String> {
    let Some(program) = command.first() else { return Ok(()) };
    let found = if program.contains(std::path::MAIN_SEPARATOR) {
        let file = folder.join(program);
        file.exists().then_some(file).ok_or_else(|| format!("there is no program `{program}` in {}", folder.display()))
    } else {
        let hint = if folder.join(program).is_file() { format!("; `./{program}` is one") } else { String::new() };
        in_path(program).ok_or_else(|| format!("there is no program `{program}` in PATH{hint}"))
    };
    let file = found?;
    if file.is_dir() {
        return Err(format!("`{program}` is a folder, a program is expected"));
    }
    if !is_executable(&file) {
        return Err(format!("`{program}` is not executable; `chmod +x {}` makes it so", file.display()));
    }
    match interpreter(&file) {
        Some(interpreter) if !Path::new(&interpreter).exists() => {
            let ending = if interpreter.ends_with('\r') { ", with a carriage return at its end" } else { "" };
            let interpreter = interpreter.trim_end();
            Err(format!("`{program}` begins with #!{interpreter}{ending}: there is no such program"))
        }
        _ => Ok(()),
    }
}

/// The first executable file of this name; without one, the first file.
fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let files: Vec<PathBuf> =
        std::env::split_paths(&path).map(|folder| folder.join(program)).filter(|file| file.is_file()).collect();
    files.iter().find(|file| is_executable(file)).or(files.first()).cloned()
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

/// The program that a script names in its first line.
fn interpreter(file: &Path) -> Option<String> {
    use std::io::Read;
    let mut begin = Vec::new();
    std::fs::File::open(file).ok()?.take(SHEBANG_BYTES as u64).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.trim_start_matches([' ', '\t']).split([' ', '\t']).next().map(str::to_owned)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_that_cannot_be_executed_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("good", "#! /bin/sh -e\n", 0o755);
        write("plain", "#!/bin/sh\n", 0o644);
        write("strange", "#!/no/such/shell\n", 0o755);
        write("dos", "#!/bin/sh\r\n", 0o755);
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let problem = |program: &str| check(&[program.to_owned()], folder.path()).err().unwrap_or_default();
        for good in ["sh", "./good", "/bin/sh"] {
            assert_eq!(problem(good), "");
        }
        for (program, part) in [
            ("no-such-program", "in PATH"),
            ("good", "`./good` is one"),
            ("./none", "there is no program"),
            ("./plain", "is not executable; `chmod +x"),
            ("./strange", "#!/no/such/shell: there is no such program"),
            ("./dos", "#!/bin/sh, with a carriage return at its end"),
            ("./sub", "is a folder"),
        ] {
            assert!(problem(program).contains(part), "{program}: {}", problem(program));
        }
    }
}
