//! Batch APIs that the runner starts: they are given up, ended, and their last lines are shown.

use std::io::{BufReader, Read};
use std::process::{Command, Stdio};

use crate::folder::{Folder, RECORD, read_to, signal, stderr, until, with_batch_api};

/// A folder with a server in Python; `body` may use `port`.
fn with_server(body: &str, settings: &str) -> Folder {
    let folder = Folder::with_rows(8, RECORD);
    folder.write("policy.yaml", with_batch_api("{url: 'http://127.0.0.1:${PORT}/', timeout: 10s}"));
    let head = "import http.server, os, signal, sys, time\nport = int(os.environ['PORT'])\nopen('pid', 'w').write(str(os.getpid()))\n";
    folder.write("server.py", format!("{head}{body}"));
    folder.write("run.yaml", format!("start: [sh, -c, 'python3 server.py; exit $?']\n{settings}"));
    folder
}

const SERVE: &str = "
class Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        self.send_response(200)
        self.send_header('content-length', '0')
        self.end_headers()
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('127.0.0.1', port), Api).serve_forever()
";

/// Waits until the server is gone: the shell that started it is not there any more to wait for it.
fn wait_for_its_end(folder: &Folder) {
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let pid = pid.trim();
    let alive = || Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success();
    let zombie = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    let gone = || if !alive() || zombie() { Ok(()) } else { Err(format!("{pid} was left behind")) };
    until("the server's end", gone);
}

#[test]
fn a_server_that_never_listens_is_given_up() {
    let folder = with_server("", "");
    // Not in Python, which a busy machine may start too slowly to be given up in the middle.
    folder.write("server.sh", "echo $$ > pid\necho warming up\nsleep 1000\n");
    folder.write("run.yaml", "start: [sh, -c, 'sh server.sh; exit $?']\nstart_timeout: 5s\n");
    let output = folder.run(&["--check"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = stderr(&output);
    for part in ["run.yaml", "did not open port", "127.0.0.1", "within 5s", "start_timeout", "warming up"] {
        assert!(printed.contains(part), "`{part}` is not in: {printed}");
    }
    wait_for_its_end(&folder);
}

#[test]
fn a_server_that_ends_by_itself_is_reported_with_its_last_lines() {
    let folder = with_server(
        "print('x' * 100000)\nprint('bytes', flush=True)\nos.write(1, b'\\xff\\n')\n\
         sys.exit('cannot bind: no licence')\n",
        "",
    );
    let output = folder.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let printed = stderr(&output);
    assert!(printed.contains("exit status: 1") && printed.contains("no licence"), "{printed}");
    assert!(printed.len() < 5_000, "{} bytes", printed.len());
    // In the middle of the run, too.
    let dying =
        SERVE.replace("self.send_response(200)", "print('out of paper', file=sys.stderr, flush=True); os._exit(7)");
    let folder = with_server(&dying, "");
    let [option, value] = folder.data_option();
    let output = folder.run(&[&option, &value]);
    assert_eq!(output.status.code(), Some(1));
    let printed = stderr(&output);
    for part in ["exit status: 7", "out of paper", "before the run did; repeat the command with the same --data"] {
        assert!(printed.contains(part), "`{part}` is not in: {printed}");
    }
}

#[test]
fn a_server_may_get_its_port_as_an_argument() {
    let folder = with_server(&format!("assert sys.argv[1] == str(port)\n{SERVE}"), "");
    folder.write("run.yaml", "start: [python3, server.py, \"${PORT}\"]\n");
    assert_eq!(folder.summary(&[])["succeeded"], 8);
}

/// Neither the end of its standard input nor SIGTERM ends it. The summary is larger than a pipe, so it is printed only as far as
/// it is read; until then the server's standard input must not have ended.
#[test]
fn a_server_that_does_not_want_to_end_does_not_hold_the_summary_back() {
    let watch = "
import json, threading
signal.signal(signal.SIGTERM, lambda *_: open('asked', 'w'))
threading.Thread(target=lambda: (sys.stdin.read(), open('ended', 'w')), daemon=True).start()
";
    let refuse = "body = json.loads(self.rfile.read(int(self.headers['content-length'])))
        members = [{'id': member['id'], 'outcome': 'failed', 'error': 'x' * 200} for member in body['members']]
        answer = json.dumps({'members': members}).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)";
    let (head, rest) = SERVE.split_once("self.rfile").unwrap();
    let (_, tail) = rest.split_once("self.end_headers()").unwrap();
    let folder = with_server(&format!("{watch}{head}{refuse}{tail}"), "");
    let rows: String = (0..600).map(|n| format!("R-{n},shop-{}\n", n % 3)).collect();
    folder.write("rows.csv", format!("ref,shop\n{rows}"));
    let text = std::fs::read_to_string(folder.path().join("policy.yaml")).unwrap();
    folder.write("policy.yaml", text.replace("max_batch: 8", "max_batch: 200"));
    let mut child = folder.command(&["--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = child.stdout.take().unwrap();
    printed.read_exact(&mut [0; 1]).unwrap();
    assert!(!folder.path().join("ended").exists(), "the server was ended before the summary was printed");
    printed.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(folder.path().join("asked").exists(), "it was killed without having been asked");
    wait_for_its_end(&folder);
}

/// Sends a signal to a run that has started a server, which must end, too. Its call is answered only after that.
fn is_ended_after(name: &str, status: i32) {
    let answer = "open('called', 'w').close()
        while not os.path.exists('go'): time.sleep(0.05)
        self.send_response(200)";
    let folder = with_server(&SERVE.replace("self.send_response(200)", answer), "");
    let mut child = folder.start();
    let mut says = BufReader::new(child.stderr.take().unwrap());
    folder.wait_for("called", &mut child);
    signal(&child, name);
    read_to(&mut says, "waiting for the calls in progress");
    folder.write("go", "");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(status));
    wait_for_its_end(&folder);
}

#[test]
fn a_server_is_ended_after_ctrl_c() {
    is_ended_after("-INT", 130);
}

#[test]
fn a_server_is_ended_when_the_terminal_is_closed() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1 {
        eprintln!("not run: SIGHUP is ignored here, and so by what is started here");
        return;
    }
    is_ended_after("-HUP", 129);
}
