//! The C program that holds a mapping.

use std::{
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

pub struct Holder {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Holder {
    /// On a processor, and bound to a node, if to any.
    pub fn start(program: &Path, processor: &str, node: Option<u32>) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(processor)
            .args(node.map(|node| node.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take();
        let from = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            to,
            from: BufReader::new(from),
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A line, and the answer to it.
    pub fn ask(&mut self, line: &str) -> io::Result<String> {
        let to = self.to.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        to.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        self.from.read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    }

    /// It ends by itself.
    pub fn end(mut self) -> io::Result<()> {
        self.to = None;
        self.child.wait().map(drop)
    }

    /// SIGKILL.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // harmless where it has ended: its number stays taken until it is waited for
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
