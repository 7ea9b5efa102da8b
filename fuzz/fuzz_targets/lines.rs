//! Streams: whatever comes, each line is one of the body's, in order, and is read as it is read alone.
#![no_main]

use fanfold::json::{lines, read, read_line};
use fanfold::messages::TaskRequest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let all: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
    let mut before = 0;
    for (number, line) in lines(body) {
        assert!(number > before && !line.is_empty() && !line.contains(&b'\n') && line.trim_ascii() == line);
        let whole = usize::try_from(number).ok().and_then(|number| all.get(number - 1)).expect("a line of the body");
        assert!(whole.trim_ascii().ends_with(line));
        before = number;
        match (read_line::<TaskRequest>(line), read::<TaskRequest>(line)) {
            (Ok(task), Ok(alone)) => {
                assert_eq!(task, alone);
                let written = serde_json::to_vec(&task).expect("a task can be written");
                assert!(!written.contains(&b'\n'), "what is written is a line");
                assert_eq!(read_line::<TaskRequest>(&written).as_ref(), Ok(&task));
            }
            (Err(error), Err(_)) => assert!(!error.to_string().is_empty()),
            (one, other) => panic!("{one:?}, alone {other:?}"),
        }
    }
});
