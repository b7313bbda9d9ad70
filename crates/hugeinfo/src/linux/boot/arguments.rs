//! `sysctl.NAME=VALUE` on the kernel's command line, which the kernel writes below `/proc/sys`
//! before it starts the first process (fs/proc/proc_sysctl.c `process_sysctl_arg`; Linux 5.8).

use std::collections::TryReserveError;

use super::{
    command_line::parameters,
    kernel::Kernel,
    number::parse_sysctl,
    request::{Asked, Dropped, Phase, Place, Requests, Why},
    sysctl_conf::KEYS,
};
use crate::linux::growth::TryPush;

/// What such words ask for, in the order in which it is written.
pub(super) fn parse(line: &[u8], file: &str, kernel: &Kernel) -> Result<Requests, TryReserveError> {
    let mut requests = Requests::default();
    if !kernel.takes_sysctl() {
        return Ok(requests);
    }
    for parameter in parameters(line) {
        let Some([b'.' | b'/', name @ ..]) = parameter.name.strip_prefix(b"sysctl") else {
            continue;
        };
        let slashes = name.iter().map(|&b| if b == b'.' { b'/' } else { b });
        let Some((_, what)) = KEYS
            .into_iter()
            .find(|(key, _)| slashes.clone().eq(key.iter().copied()))
        else {
            continue;
        };
        let place = Place::new(file, parameter.number, &parameter.text());
        match parameter.value.and_then(parse_sysctl) {
            Some(pages) => requests.asked.try_push(Asked {
                page_bytes: None,
                what,
                pages,
                phase: Phase::Arguments,
                place,
            })?,
            None => requests.dropped.try_push(Dropped {
                place,
                page_bytes: None,
                why: Why::Malformed,
            })?,
        }
    }
    Ok(requests)
}
