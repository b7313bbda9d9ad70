//! Time to parse `/proc/PID/status` with our parser and with that of `procfs`, compared with the
//! time that the kernel needs to write it. This is the reason for our own parser.
//!
//!     tools/cargo bench --package hugeinfo-host

#![allow(clippy::expect_used)]

use std::{fs, hint::black_box, time::Instant};

use host::linux::process::status;
use procfs::{FromRead, process::Status};

/// The file of a backend on Linux 6.18.
const CAPTURED: &[u8] = include_bytes!("status.txt");

const ROUNDS: usize = 101;
const TIMES: u32 = 200;

fn main() {
    // Alternates between all three, so that noise affects them equally.
    let (mut ours, mut theirs, mut kernels) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(microseconds(|| status::parse_memory(black_box(CAPTURED))));
        theirs.push(microseconds(|| {
            Status::from_read(black_box(CAPTURED)).expect("status")
        }));
        kernels.push(microseconds(|| {
            fs::read("/proc/self/status").expect("a file")
        }));
    }
    let (ours, theirs, kernel) = (median(ours), median(theirs), median(kernels));
    println!("| `/proc/PID/status` | µs | to reading, ratio |\n|---|---:|---:|");
    for (name, time) in [
        ("reading it: opened, read, closed", kernel),
        ("our parser", ours),
        ("the parser of `procfs`", theirs),
    ] {
        println!("| {name} | {time:.2} | {:.2} |", time / kernel);
    }
}

fn microseconds<T>(mut work: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..TIMES {
        black_box(work());
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}
