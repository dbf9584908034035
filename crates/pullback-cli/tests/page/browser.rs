//! A headless Chromium and as much of its debugging protocol as the test needs.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    process: Child,
    out: File,
    messages: Receiver<Value>,
    session: String,
    next: usize,
    address: String,
    /// Errors, and requests for anything but the page.
    complaints: Vec<String>,
    pictures: PathBuf,
    profile: PathBuf,
}

fn program() -> Option<&'static str> {
    let works = |name: &&str| {
        let run = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        run.is_ok_and(|s| s.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works)
}

impl Browser {
    pub fn start(pictures: &Path) -> Option<Browser> {
        let Some(program) = program() else {
            assert_ne!(std::env::var("PULLBACK_BROWSER").as_deref(), Ok("required"), "there is no browser");
            // Not by a macro, whose output the test runner keeps to itself.
            let _ = writeln!(std::io::stderr(), "skipped: there is no Chromium to show the page in");
            return None;
        };
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("pullback-browser-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&profile).unwrap();
        let (to, from) = (profile.join("to"), profile.join("from"));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        // The protocol speaks over file descriptors 3 and 4, which the shell opens.
        let line = format!(
            "exec {program} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run \
             --disable-background-networking --disable-component-update --disable-sync --remote-debugging-pipe \
             --user-data-dir='{0}' about:blank 3<'{1}' 4>'{2}'",
            profile.display(),
            to.display(),
            from.display()
        );
        let process = Command::new("sh")
            .args(["-c", &line])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = File::options().write(true).open(&to).unwrap();
        let answers = BufReader::new(File::open(&from).unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(|m| m.ok()) {
                let text = String::from_utf8_lossy(&message).into_owned();
                let parsed = serde_json::from_str(&text).unwrap_or(Value::Null);
                if send.send(parsed).is_err() {
                    break;
                }
            }
        });
        let pictures = pictures.to_path_buf();
        let (session, address) = (String::new(), String::new());
        let mut b = Browser {
            process,
            out,
            messages,
            session,
            next: 0,
            address,
            complaints: Vec::new(),
            pictures,
            profile,
        };
        let target = b.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = target.get("targetId").cloned().unwrap();
        let attached = b.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        b.session = string(attached.get("sessionId"));
        for domain in ["Page", "Runtime", "Network", "Log"] {
            b.call(&format!("{domain}.enable"), json!({}));
        }
        Some(b)
    }

    /// Calls a method, and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        write!(self.out, "{message}\0").unwrap();
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message =
                self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("{method} was not answered"));
            if message.get("id") == Some(&id.into()) {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message.get("result").cloned().unwrap_or(Value::Null)),
                };
            }
            self.hear(&message);
        }
    }

    fn hear(&mut self, message: &Value) {
        let method = string(message.get("method"));
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        match method.as_str() {
            "Runtime.exceptionThrown" => self.complaints.push(params.to_string()),
            "Runtime.consoleAPICalled" if string(params.get("type")) == "error" => {
                self.complaints.push(params.to_string())
            }
            "Log.entryAdded" if params.get("entry").is_some_and(|e| string(e.get("level")) == "error") => {
                self.complaints.push(params.to_string());
            }
            "Network.requestWillBeSent" => {
                let url = string(params.get("request").and_then(|r| r.get("url")));
                if url != self.address && !url.starts_with("data:") {
                    self.complaints.push(format!("a request for {url}"));
                }
            }
            _ => {}
        }
    }

    pub fn size(&mut self, width: usize, height: usize) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1.0, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    pub fn open(&mut self, address: &str) {
        self.address = address.to_string();
        self.call("Page.navigate", json!({ "url": address }));
        self.until("document.documentElement.dataset.ready === 'true'");
    }

    /// The value of an expression as text.
    pub fn text(&mut self, expression: &str) -> String {
        self.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn evaluate(&mut self, expression: &str) -> Result<String, Value> {
        let params = json!({ "expression": format!("String({expression})") });
        let answer = self.try_call("Runtime.evaluate", params)?;
        match answer.get("exceptionDetails") {
            Some(exception) => Err(exception.clone()),
            None => Ok(string(answer.get("result").and_then(|r| r.get("value")))),
        }
    }

    /// Waits until an expression is true. While a page is on its way, there may be nothing to ask.
    pub fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.evaluate(expression) != Ok("true".to_string()) {
            assert!(Instant::now() < end, "never became true: {expression}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Presses a key on the page itself.
    pub fn key(&mut self, key: &str) {
        self.text("document.activeElement && document.activeElement.blur()");
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key }));
        }
    }

    /// Writes into a field, as a person does.
    pub fn write(&mut self, field: &str, text: &str) {
        self.text(&format!(
            "(() => {{ const e = document.getElementById('{field}'); e.focus(); e.select(); }})()"
        ));
        self.call("Input.insertText", json!({ "text": text }));
    }

    pub fn screenshot(&mut self, name: &str) {
        // After the transitions.
        std::thread::sleep(Duration::from_millis(300));
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = decoded(&string(answer.get("data")));
        assert!(bytes.starts_with(b"\x89PNG"));
        std::fs::write(self.pictures.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Fails if the page complained or asked for anything from outside.
    pub fn finish(mut self) {
        self.text("1");
        assert!(self.complaints.is_empty(), "{:#?}", self.complaints);
        self.session.clear();
        self.call("Browser.close", json!({}));
        let _ = self.process.wait();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn string(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(s)) => s.clone(),
        _ => String::new(),
    }
}

fn decoded(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|c| *c != b'=').map(|c| u32::from(digit(c))).collect();
    let mut out = Vec::new();
    for chunk in digits.chunks(4) {
        let all = chunk.iter().fold(0, |n, d| n << 6 | d) << (6 * (4 - chunk.len()));
        out.extend(all.to_be_bytes()[1..chunk.len()].iter());
    }
    out
}
