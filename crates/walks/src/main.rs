//! Random walks over huge pages, on the running kernel and on the model of it at once: after every
//! step every counter of both has to be the same. `t/029_walks.pl` sets the stage and puts the host
//! back. Prints TAP.

mod holder;
mod kernel;
mod machine;
mod random;
mod servers;
mod walk;

use std::{collections::BTreeMap, env, path::PathBuf, time::Instant};

use kernel::Kernel;
use machine::KernelRules;
use random::Random;
use servers::Servers;
use walk::{Stage, Walk};

/// `NAME=VALUE` of the command line.
struct Words(BTreeMap<String, String>);

impl Words {
    fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(|text| text.parse().ok())
    }

    fn list(&self, name: &str) -> Vec<PathBuf> {
        let text = self.text(name);
        text.split(':')
            .filter(|text| !text.is_empty())
            .map(PathBuf::from)
            .collect()
    }
}

/// Pages that the largest pool of small huge pages has, and that of gigantic ones.
const SCALE: u64 = 240;
const GIGANTIC_SCALE: u64 = 2;

fn main() {
    let words = env::args().skip(1);
    let pairs = words.filter_map(|word| Some(own(word.split_once('=')?)));
    let words = Words(pairs.collect());
    if let Err(error) = run(&words) {
        println!("Bail out! {error}");
    }
}

fn own((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn run(words: &Words) -> Result<(), String> {
    let version = if words.text("version") == "1" { 1 } else { 2 };
    let kernel = Kernel::new(version, words.list("groups"));
    let base_kb = words.number("base_kb").unwrap_or(4);
    let homes = |nodes: &[u32]| {
        nodes
            .iter()
            .filter_map(|&node| Kernel::home(node, nodes))
            .collect()
    };
    let mode = kernel::number("/proc/sys/vm/overcommit_memory").map_err(walk::text)?;
    let mut stage = Stage {
        base_kb,
        holder: PathBuf::from(words.text("holder")),
        homes: homes(&kernel.nodes),
        may_change_commit: mode != 2,
        servers: None,
        kernel,
    };
    let servers = Servers {
        programs: PathBuf::from(words.text("programs")),
        user: words.text("user"),
        data: words.list("data"),
    };

    let largest = kernel::largest_block_kb(base_kb).map_err(walk::text)?;
    let sizes = 0..stage.kernel.sizes_kb.len();
    let (gigantic, small): (Vec<usize>, Vec<usize>) =
        sizes.partition(|&size| stage.kernel.sizes_kb[size] > largest);
    let gigantic: Vec<usize> = gigantic
        .into_iter()
        .filter(|&size| can_be_made(&stage, size))
        .collect();

    let base = words.number("seed").unwrap_or(1);
    let count = |name| words.number(name).unwrap_or(0);
    let large = if gigantic.is_empty() {
        0
    } else {
        count("gigantic")
    };
    let (plain, with_servers) = (count("walks"), count("servers"));
    let all = plain + large + with_servers;
    let only = words.number("only");
    let steps = words.number("steps").unwrap_or(20);
    println!(
        "# base seed {base}; control groups of version {version}, {} of them",
        stage.kernel.groups.len()
    );
    println!(
        "# {plain} walks; {large} with {:?} kB, {with_servers} with servers; {steps} steps",
        gigantic
            .iter()
            .map(|&size| stage.kernel.sizes_kb[size])
            .collect::<Vec<_>>()
    );
    println!("1..{}", if only.is_some() { 1 } else { all });

    let mut servers = Some(servers);
    let mut counts = BTreeMap::<&str, u64>::new();
    let mut began = Instant::now();
    let mut spent = Vec::new();
    let mut disturbances = Disturbances::default();
    // one after the other turns out to be not those of this kernel
    let mut rules = KernelRules::all(stage.kernel.nodes.len());
    for number in 1..=all {
        if number == plain + 1 || number == plain + large + 1 {
            spent.push(began.elapsed().as_secs_f32());
            began = Instant::now();
        }
        let kind = match number {
            _ if number <= plain => "walk",
            _ if number <= plain + large => "gigantic pages",
            _ => "servers",
        };
        if kind == "servers" && stage.servers.is_none() {
            stage.servers = servers.take();
        }
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let (sizes, scale) = match kind {
            "gigantic pages" => (&gigantic, GIGANTIC_SCALE),
            _ => (&small, SCALE),
        };
        let mut tries = 0;
        let taken = loop {
            tries += 1;
            let random = Random::of(base, number);
            let mut walk = Walk::new(&stage, &rules, random, sizes.clone(), scale)?;
            let result = walk.run(steps);
            let right: Vec<_> = walk.machines.iter().map(|machine| machine.rules).collect();
            let taken = Taken {
                log: std::mem::take(&mut walk.log),
                counts: std::mem::take(&mut walk.counts),
                difference: result.err(),
            };
            // all that is ours ends
            drop(walk);
            if taken.difference.is_none() {
                rules.retain(|rules| right.contains(rules));
            }
            if !disturbances.excuse(&taken, tries) {
                break taken;
            }
        };
        let verdict = if taken.difference.is_none() {
            "ok"
        } else {
            "not ok"
        };
        let shown = if only.is_some() { 1 } else { number };
        println!("{verdict} {shown} - {kind}, seed {base}/{number}");
        if taken.difference.is_some() || only.is_some() {
            taken.print();
        }
        if taken.difference.is_some() {
            println!(
                "# again: HUGEINFO_WALK_SEED={base} HUGEINFO_WALK_ONLY={number} \
                 scripts/with-postgres t/run -v t/029_walks.pl"
            );
        }
        for (what, times) in taken.counts {
            *counts.entry(what).or_default() += times;
        }
    }
    spent.push(began.elapsed().as_secs_f32());
    println!("# seconds: {spent:.1?}");
    println!("# rules of this kernel: {rules:?}");
    counts
        .iter()
        .for_each(|(what, times)| println!("# {what}: {times}"));
    Ok(())
}

/// What came of a walk.
struct Taken {
    log: Vec<String>,
    counts: BTreeMap<&'static str, u64>,
    difference: Option<String>,
}

impl Taken {
    fn print(&self) {
        self.log.iter().for_each(|step| println!("#   {step}"));
        let difference = self.difference.iter().flat_map(|text| text.lines());
        difference.for_each(|line| println!("#   DIFFERS: {line}"));
    }
}

/// Others on this machine may take huge pages meanwhile. Where the model is wrong, the same walk
/// differs again; where somebody was in the way, it doesn't.
#[derive(Default)]
struct Disturbances {
    by_nobody: u32,
}

impl Disturbances {
    /// Whether the walk is to be taken again.
    fn excuse(&mut self, taken: &Taken, tries: u32) -> bool {
        if taken.difference.is_none() {
            return false;
        }
        let strangers = kernel::strangers();
        let excused = if strangers.is_empty() {
            self.by_nobody += 1;
            tries == 1 && self.by_nobody <= 3
        } else {
            tries <= 10
        };
        if excused {
            taken.print();
            println!("# disturbed, and taken again; huge pages are held by: {strangers:?}");
        }
        excused
    }
}

/// Whether this machine has the memory for such a page in one piece.
fn can_be_made(stage: &Stage, size: usize) -> bool {
    let kb = stage.kernel.sizes_kb[size];
    let file = Kernel::pool_file(kb, "nr_hugepages");
    let made =
        kernel::write(&file, 1).is_ok() && kernel::number(&file).is_ok_and(|pages| pages == 1);
    let _ = kernel::write(&file, 0);
    made
}
