//! One walk: the same steps on the kernel and on the model, compared after each.

use std::{collections::BTreeMap, fmt::Debug, io, path::PathBuf, thread::sleep, time::Duration};

use hugeinfo::model::{cgroup::Kind, commit::Rule, mapping::Place};

use crate::{
    holder::Holder,
    kernel::{self, Kernel},
    machine::{KernelRules, Machine, commit},
    random::Random,
    servers::{Server, Servers},
};

/// A processor, and the nodes by their distance from it.
pub type Home = (String, Vec<u32>);

/// What all walks share.
pub struct Stage {
    pub kernel: Kernel,
    pub base_kb: u64,
    pub holder: PathBuf,
    pub homes: Vec<Home>,
    pub may_change_commit: bool,
    pub servers: Option<Servers>,
}

/// Who holds a mapping, on the kernel.
pub struct Held {
    pub holder: Holder,
    pub pages: u64,
    /// Of the first so many all are touched, and no other.
    pub touched: u64,
    pub place: Place,
}

pub struct Walk<'a> {
    pub stage: &'a Stage,
    pub random: Random,
    /// Page sizes to walk on, by their place.
    pub sizes: Vec<usize>,
    /// The pool is made about so large.
    pub scale: u64,
    /// All machines that this one can be.
    pub machines: Vec<Machine>,
    pub held: BTreeMap<u64, Held>,
    pub running: BTreeMap<u64, Server>,
    pub last: u64,
    pub log: Vec<String>,
    /// Of what happened, for the summary.
    pub counts: BTreeMap<&'static str, u64>,
}

pub type Done = Result<(), String>;

pub fn text(error: io::Error) -> String {
    error.to_string()
}

impl<'a> Walk<'a> {
    pub fn new(
        stage: &'a Stage,
        rules: &[KernelRules],
        mut random: Random,
        sizes: Vec<usize>,
        scale: u64,
    ) -> Result<Self, String> {
        let machines = empty(stage, rules)?;
        let scale = match random.to(9) {
            // a server takes a dozen pages and more
            _ if stage.servers.is_some() => scale,
            0..5 => scale / 16,
            5..9 => scale / 6,
            _ => scale,
        };
        Ok(Self {
            stage,
            random,
            sizes,
            scale: scale.max(2),
            machines,
            held: BTreeMap::new(),
            running: BTreeMap::new(),
            last: 0,
            log: Vec::new(),
            counts: BTreeMap::new(),
        })
    }

    pub fn run(&mut self, steps: u64) -> Done {
        self.compare()?;
        for _ in 0..steps {
            self.step()?;
            self.compare()?;
        }
        // who is left goes, one after the other
        while let Some((&number, _)) = self.held.first_key_value() {
            self.end(number, "ends")?;
            self.compare()?;
        }
        while let Some((&number, _)) = self.running.first_key_value() {
            self.stop_server(number)?;
            self.compare()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Done {
        if self.stage.servers.is_some() && self.random.once_in(2) {
            return self.server_step();
        }
        let size = *self.random.of_list(&self.sizes).ok_or("no page size")?;
        let holders: Vec<u64> = self.held.keys().copied().collect();
        let holder = self.random.of_list(&holders).copied();
        let untouched = self
            .held
            .iter()
            .filter(|(_, held)| held.touched < held.pages);
        let untouched: Vec<u64> = untouched.map(|(&number, _)| number).collect();
        let toucher = self.random.of_list(&untouched).copied().or(holder);
        match (self.random.to(99), holder, toucher) {
            (0..16, ..) => self.set_pool(size),
            (16..26, ..) => self.set_node_pool(size),
            (26..34, ..) => self.set_overcommit(size),
            (34..37, ..) if self.stage.may_change_commit => self.set_commit(),
            (37..50, ..) => self.set_limit(size),
            (50..54, Some(holder), _) => self.move_holder(holder),
            (54..78, _, Some(toucher)) => self.touch(toucher),
            (78..82, Some(holder), _) => self.end(holder, "unmaps"),
            (82..86, Some(holder), _) => self.end(holder, "is killed"),
            _ if holders.len() < 6 => self.map(size),
            (_, _, Some(toucher)) => self.touch(toucher),
            _ => self.set_pool(size),
        }
    }

    /// Notes a step before it is taken.
    pub fn note(&mut self, step: String) {
        self.log.push(step);
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Takes the step on each machine that it can be, and keeps those where what comes of it is
    /// what came of it on the kernel.
    pub fn take<T: PartialEq + Debug>(
        &mut self,
        on_kernel: T,
        mut step: impl FnMut(&mut Machine) -> T,
    ) -> Done {
        let results: Vec<T> = self.machines.iter_mut().map(&mut step).collect();
        let mut right = results.iter().map(|result| *result == on_kernel);
        if !results.contains(&on_kernel) {
            return Err(format!(
                "the kernel says {on_kernel:?}, the model {results:?}"
            ));
        }
        self.machines.retain(|_| right.next() == Some(true));
        if let Some(step) = self.log.last_mut() {
            step.push_str(&format!(": {on_kernel:?}"));
        }
        Ok(())
    }

    /// Every counter.
    pub fn compare(&mut self) -> Done {
        let version = self.stage.kernel.version;
        let shown = self.stage.kernel.shown().map_err(text)?;
        let mut differences = Vec::new();
        self.machines.retain(|machine| {
            let modelled = machine.shown(version);
            if modelled != shown {
                let names = shown
                    .keys()
                    .filter(|&name| shown.get(name) != modelled.get(name));
                let value = |value: Option<&Option<u64>>| match value.copied().flatten() {
                    Some(value) => value.to_string(),
                    None => "none".into(),
                };
                let difference = |name: &String| {
                    let (kernel, model) = (value(shown.get(name)), value(modelled.get(name)));
                    format!("{name}: kernel {kernel}, model {model}")
                };
                differences = names.map(difference).collect();
            }
            modelled == shown
        });
        if self.machines.is_empty() {
            return Err(differences.join("\n"));
        }
        Ok(())
    }

    /// A place for something new: a group or none, near a node.
    pub fn place(&mut self) -> (Place, String) {
        let groups: Vec<Option<usize>> = std::iter::once(None)
            .chain(self.stage.kernel.places().into_iter().map(Some))
            .collect();
        let group = self.random.of_list(&groups).copied().flatten();
        let home = self.random.of_list(&self.stage.homes).cloned();
        let (processor, nodes) = home.unwrap_or_default();
        (Place { group, nodes }, processor)
    }

    fn set_pool(&mut self, size: usize) -> Done {
        let pages = self.random.to(self.scale);
        self.set_pool_to(size, pages)
    }

    pub fn set_pool_to(&mut self, size: usize, pages: u64) -> Done {
        let kb = self.machines[0].sizes[size].kb;
        self.note(format!("{kb} kB: {pages} pages"));
        let answer = kernel::write(Kernel::pool_file(kb, "nr_hugepages"), pages);
        self.take_what_there_is(size)?;
        self.take(answer, |machine| {
            let pool = &mut machine.sizes[size].pool;
            pool.set(pages);
            pool.nodes.iter_mut().for_each(|node| node.room = None);
            Ok(())
        })
    }

    fn set_node_pool(&mut self, size: usize) -> Done {
        let pages = self.random.to(self.scale);
        let node = *self
            .random
            .of_list(&self.stage.kernel.nodes)
            .ok_or("no node")?;
        let kb = self.machines[0].sizes[size].kb;
        self.note(format!("{kb} kB on node {node}: {pages} pages"));
        let answer = kernel::write(Kernel::node_file(node, kb, "nr_hugepages"), pages);
        self.take_what_there_is(size)?;
        self.take(answer, |machine| {
            let pool = &mut machine.sizes[size].pool;
            let done = pool.set_on_node(node, pages);
            pool.nodes.iter_mut().for_each(|node| node.room = None);
            done.map(drop).map_err(|_| -1)
        })
    }

    /// Whether gigantic pages can be made is known to the kernel alone: a node has room for as many
    /// as it has given. Smaller ones have to be there.
    fn take_what_there_is(&mut self, size: usize) -> Done {
        for machine in &mut self.machines {
            let machine = &mut machine.sizes[size];
            for node in machine
                .pool
                .nodes
                .iter_mut()
                .filter(|_| machine.pool.is_gigantic)
            {
                let file = Kernel::node_file(node.number, machine.kb, "nr_hugepages");
                let given = kernel::number(file)
                    .map_err(text)?
                    .saturating_sub(node.total);
                node.room = Some(given);
            }
        }
        Ok(())
    }

    fn set_overcommit(&mut self, size: usize) -> Done {
        let pages = if self.random.once_in(4) {
            0
        } else {
            self.random.to(self.scale / 2)
        };
        let kb = self.machines[0].sizes[size].kb;
        self.note(format!("{kb} kB: overcommit {pages}"));
        let answer = kernel::write(Kernel::pool_file(kb, "nr_overcommit_hugepages"), pages);
        // EINVAL
        self.take(answer, |machine| {
            machine.sizes[size]
                .pool
                .set_overcommit(pages)
                .map_err(|_| 22)
        })
    }

    fn set_commit(&mut self) -> Done {
        let rule = if self.random.once_in(3) {
            Rule::Kilobytes(1 + self.random.to(32 << 20))
        } else {
            Rule::Ratio(1 + self.random.to(120))
        };
        let (name, value) = match rule {
            Rule::Kilobytes(value) => ("kbytes", value),
            Rule::Ratio(value) => ("ratio", value),
        };
        self.note(format!("overcommit_{name} {value}"));
        let answer = kernel::write(format!("/proc/sys/vm/overcommit_{name}"), value);
        let seen = commit(self.stage.base_kb).map_err(text)?;
        self.take((answer, seen.rule), |machine| {
            machine.commit.rule = rule;
            (Ok(()), rule)
        })
    }

    fn set_limit(&mut self, size: usize) -> Done {
        let groups: Vec<usize> = (0..self.stage.kernel.groups.len()).collect();
        let Some(&group) = self.random.of_list(&groups) else {
            return Ok(());
        };
        // as lift_fault_limits
        let is_reservation = !self.running.is_empty() || self.random.once_in(2);
        let kind = if is_reservation {
            Kind::Reservation
        } else {
            Kind::Fault
        };
        let machine = &self.machines[0].sizes[size];
        let (kb, now) = (machine.kb, machine.groups.0[group]);
        let used = match kind {
            Kind::Fault => now.faults.used,
            Kind::Reservation => now.reservations.unwrap_or_default().used,
        };
        let pages = match self.random.to(9) {
            0..2 => None,
            2 => Some(0),
            3..5 => Some(self.random.near(used)),
            5..7 => Some(self.random.to(used)),
            _ => Some(self.random.to(self.scale)),
        };
        // not always whole pages
        let part = if self.random.once_in(3) {
            self.random.to((kb << 10) - 1)
        } else {
            0
        };
        let bytes = pages.map(|pages| pages * (kb << 10) + part);
        let written = bytes.map_or(self.stage.kernel.no_limit().into(), |bytes| {
            bytes.to_string()
        });
        self.note(format!(
            "{kb} kB: {kind:?} limit of group {group} {written}, {used} pages used"
        ));
        let answer = kernel::write(
            self.stage.kernel.limit_file(group, kb, is_reservation),
            written,
        );
        self.count(if answer.is_ok() {
            "limits set"
        } else {
            "limits refused"
        });
        // EBUSY
        self.take(answer, |machine| {
            let groups = &mut machine.sizes[size].groups;
            groups
                .set_limit(group, kind, bytes, kb << 10)
                .map_err(|_| 16)
        })
    }

    fn enter(&self, pid: u32, group: usize) -> Done {
        let file = self.stage.kernel.groups[group].join("cgroup.procs");
        kernel::write(file, pid).map_err(|error| format!("cgroup.procs: error {error}"))
    }

    fn map(&mut self, size: usize) -> Done {
        let (mut place, processor) = self.place();
        // before Linux 6.12 a reservation takes surplus pages from all nodes even so
        let nodes = &self.stage.kernel.nodes;
        let is_bound = nodes.len() > 1 && kernel::is_since(6, 12) && self.random.once_in(3);
        let node = self.random.of_list(nodes).copied().filter(|_| is_bound);
        place
            .nodes
            .retain(|&number| node.is_none_or(|node| node == number));
        let pool = &self.machines[0].sizes[size].pool;
        let (kb, available) = (
            pool.page_bytes >> 10,
            pool.available() + pool.overcommit_left(),
        );
        let pages = if self.random.once_in(3) {
            self.random.near(available)
        } else {
            self.random.to(self.scale / 2)
        };
        let pages = pages.max(1);
        let promised = !self.random.once_in(4);
        let how = if promised { "reserve" } else { "noreserve" };
        let number = self.last + 1;
        self.last = number;
        self.note(format!(
            "{number} in {:?} near {:?} maps {pages} of {kb} kB, {how}",
            place.group, place.nodes
        ));

        let mut holder = Holder::start(&self.stage.holder, &processor, node).map_err(text)?;
        if let Some(group) = place.group {
            self.enter(holder.pid(), group)?;
        }
        let answer = holder
            .ask(&format!("map {pages} {kb} {how}"))
            .map_err(text)?;
        let is_mapped = answer == "mapped";
        if !is_mapped && answer != "refused 12" {
            return Err(answer);
        }
        self.count(if is_mapped {
            "mapped"
        } else {
            "mappings refused"
        });
        self.take(is_mapped, |machine| {
            machine.map(number, size, pages, promised, &place)
        })?;
        if is_mapped {
            let held = Held {
                holder,
                pages,
                touched: 0,
                place,
            };
            self.held.insert(number, held);
        }
        Ok(())
    }

    fn touch(&mut self, number: u64) -> Done {
        let Some(held) = self.held.get_mut(&number) else {
            return Err(format!("no holder {number}"));
        };
        let left = held.pages - held.touched;
        let pages = if self.random.once_in(3) {
            left
        } else {
            self.random.to(left)
        };
        let who = if self.random.once_in(3) {
            "child"
        } else {
            "touch"
        };
        self.log
            .push(format!("{number} touches {pages} of {left} ({who})"));
        let question = format!("{who} {} {pages}", held.touched);
        let answer = held.holder.ask(&question).map_err(text)?;
        let (word, got) = answer.split_once(' ').unwrap_or_default();
        let got: u64 = got.parse().map_err(|_| answer.clone())?;
        let is_dead = word == "sigbus";
        if !is_dead && word != "touched" {
            return Err(answer);
        }
        held.touched += got;
        let place = held.place.clone();
        self.count(if is_dead {
            "deaths by SIGBUS"
        } else {
            "touched"
        });
        self.take((got, is_dead), |machine| {
            machine.touch(number, pages, &place)
        })
    }

    /// What it touches then is charged to the new group, what it was promised stays with the old.
    fn move_holder(&mut self, number: u64) -> Done {
        let groups = self.stage.kernel.places();
        let Some(&group) = self.random.of_list(&groups) else {
            return Ok(());
        };
        self.note(format!("{number} moves to group {group}"));
        let Some(held) = self.held.get_mut(&number) else {
            return Ok(());
        };
        held.place.group = Some(group);
        let pid = held.holder.pid();
        self.enter(pid, group)
    }

    fn end(&mut self, number: u64, how: &'static str) -> Done {
        self.note(format!("{number} {how}"));
        if let Some(mut held) = self.held.remove(&number) {
            match how {
                "unmaps" => {
                    let answer = held.holder.ask("unmap").map_err(text)?;
                    if answer != "unmapped" {
                        return Err(answer);
                    }
                    self.machines
                        .iter_mut()
                        .for_each(|machine| machine.unmap(number));
                    self.compare()?;
                    return held.holder.end().map_err(text);
                }
                "is killed" => held.holder.kill().map_err(text)?,
                _ => held.holder.end().map_err(text)?,
            }
        }
        self.count(how);
        self.machines
            .iter_mut()
            .for_each(|machine| machine.unmap(number));
        Ok(())
    }
}

/// All machines that this one can be, after everything has been taken back. Waits for others whose
/// huge pages are in the way.
fn empty(stage: &Stage, rules: &[KernelRules]) -> Result<Vec<Machine>, String> {
    for _ in 0..600 {
        for &kb in &stage.kernel.sizes_kb {
            // with several nodes free surplus pages may be left, which only a larger pool takes in
            let file = Kernel::pool_file(kb, "nr_hugepages");
            if let Ok(pages) = kernel::number(&file) {
                let _ = kernel::write(&file, pages);
            }
            let _ = kernel::write(&file, 0);
            // gigantic pages have none
            let _ = kernel::write(Kernel::pool_file(kb, "nr_overcommit_hugepages"), 0);
            for group in 0..stage.kernel.groups.len() {
                for is_reservation in [false, true] {
                    let file = stage.kernel.limit_file(group, kb, is_reservation);
                    let _ = kernel::write(file, stage.kernel.no_limit());
                }
            }
        }
        let machines = Machine::all(&stage.kernel, stage.base_kb, rules).map_err(text)?;
        let is_empty = |machine: &Machine| machine.sizes.iter().all(|size| size.pool.total() == 0);
        if machines.iter().all(is_empty) {
            return Ok(machines);
        }
        sleep(Duration::from_millis(100));
    }
    let strangers = kernel::strangers().join(", ");
    Err(format!("somebody else holds huge pages: {strangers}"))
}
