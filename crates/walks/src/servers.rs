//! Real servers of PostgreSQL on a walk.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use hugeinfo::{
    model::{
        cgroup::Kind,
        mapping::Place,
        start::{Outcome, Start},
    },
    server::facts::{HugePages, SharedMemoryType},
};

use crate::{
    kernel::{self, Kernel},
    walk::{Done, Walk, text},
};

/// Where servers come from.
pub struct Servers {
    /// Of PostgreSQL's programs.
    pub programs: PathBuf,
    pub user: String,
    /// Each can run one.
    pub data: Vec<PathBuf>,
}

/// One that runs.
pub struct Server {
    postmaster: Child,
    data: PathBuf,
    place: Place,
    /// The place of its page size, where it lies on huge pages.
    size: Option<usize>,
    /// Tables that have been filled.
    tables: u64,
}

/// How long anything of a server may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Servers {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        let user = format!("--reuid={}", self.user);
        let group = format!("--regid={}", self.user);
        command.args([&user, &group, "--init-groups"]);
        command.arg(self.programs.join(program));
        command.stdin(Stdio::null());
        command
    }

    /// The shared memory that it will ask for: a number of pages one larger than needed, and a page
    /// so small that it is exact.
    fn bytes(&self, data: &Path, settings: &[String]) -> io::Result<u64> {
        let answer = self
            .command("postgres")
            .arg("-D")
            .arg(data)
            .args(settings)
            .args([
                "-c",
                "huge_page_size=4kB",
                "-C",
                "shared_memory_size_in_huge_pages",
            ])
            .stderr(Stdio::null())
            .output()?;
        let pages = String::from_utf8_lossy(&answer.stdout)
            .trim()
            .parse::<u64>();
        let pages = pages.map_err(|_| io::Error::other("postgres -C does not answer"))?;
        Ok(pages.saturating_sub(1) * 4096)
    }
}

impl Server {
    /// The postmaster first: it makes no more children then.
    fn processes(&self) -> Vec<u32> {
        let pid = self.postmaster.id();
        let children = kernel::read(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let children = children
            .split_whitespace()
            .filter_map(|text| text.parse().ok());
        std::iter::once(pid).chain(children).collect()
    }

    /// While it stands still it touches nothing.
    fn stand_still(&self) -> Done {
        signal("STOP", &[self.postmaster.id()])?;
        signal("STOP", &self.processes())?;
        let stands = |pid: &u32| matches!(state(*pid), None | Some('T' | 'Z'));
        wait_until("it stands still", || self.processes().iter().all(stands))
    }

    fn go_on(&self) -> Done {
        signal("CONT", &self.processes())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // harmless where it has ended: its number stays taken until it is waited for
        let _ = signal("KILL", &self.processes());
        let _ = self.postmaster.wait();
    }
}

/// By kill(1), since nothing here is unsafe.
fn signal(name: &str, pids: &[u32]) -> Done {
    let pids = pids.iter().map(ToString::to_string);
    // one that has just ended is no error
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}"))
        .args(pids)
        .stderr(Stdio::null());
    kill.status().map(drop).map_err(text)
}

/// Of a process, as in /proc/PID/stat.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Done {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > PATIENCE {
            return Err(format!("not within {PATIENCE:?}: {what}"));
        }
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

impl Walk<'_> {
    pub fn server_step(&mut self) -> Done {
        let running: Vec<u64> = self.running.keys().copied().collect();
        match (self.random.to(9), self.random.of_list(&running).copied()) {
            (0..3, Some(server)) => self.touch_server(server),
            (3..5, Some(server)) => self.stop_server(server),
            (5..7, Some(server)) => self.kill_server(server),
            (_, Some(server)) if running.len() == 3 => self.touch_server(server),
            _ => self.start_server(),
        }
    }

    fn start_server(&mut self) -> Done {
        let Some(servers) = &self.stage.servers else {
            return Ok(());
        };
        let is_idle = |data: &&PathBuf| self.running.values().all(|server| server.data != **data);
        let data = servers
            .data
            .iter()
            .find(is_idle)
            .ok_or("no data directory")?;
        let huge_pages = match self.random.to(9) {
            0 => HugePages::Off,
            1..6 => HugePages::On,
            _ => HugePages::Try,
        };
        let shared_memory_type = match self.random.to(9) {
            0 => SharedMemoryType::Sysv,
            _ => SharedMemoryType::Mmap,
        };
        let buffers = 2 + self.random.to(100);
        // the last one is a size that no kernel has
        let size = *self.random.of_list(&self.sizes).ok_or("no page size")?;
        let is_unknown = self.random.once_in(12);
        let kb = if is_unknown {
            3 << 10
        } else {
            self.machines[0].sizes[size].kb
        };
        let settings: Vec<String> = [
            format!("huge_pages={}", huge_pages.as_str()),
            format!("shared_memory_type={}", shared_memory_type.as_str()),
            format!("shared_buffers={buffers}MB"),
            format!("huge_page_size={kb}kB"),
        ]
        .into_iter()
        .flat_map(|setting| ["-c".into(), setting])
        .collect();
        // its last huge_page_size counts
        let bytes = servers.bytes(data, &settings).map_err(text)?;
        let start = Start {
            huge_pages,
            shared_memory_type,
            bytes,
            huge_page_bytes: Some(kb << 10),
            commit_room_bytes: None,
        };
        if !is_unknown && self.random.once_in(2) {
            // just enough, or a page more or fewer
            let pool = &self.machines[0].sizes[size].pool;
            let taken = pool.total().saturating_sub(pool.available());
            let pages = taken.saturating_add(start.pages(pool));
            let pages = self.random.near(pages);
            self.set_pool_to(size, pages)?;
            self.compare()?;
        }
        let (place, processor) = self.place();
        self.lift_fault_limits(size, &place)?;
        let number = self.last + 1;
        self.last = number;
        let group = place.group;
        let settings_said = settings.iter().filter(|word| *word != "-c").cloned();
        let settings_said: Vec<_> = settings_said.collect();
        self.log.push(format!(
            "server {number} in {group:?}, {bytes} bytes, {}",
            settings_said.join(" ")
        ));

        // into its group and onto its processor before it is PostgreSQL
        let directory = data.display();
        let log = File::create(format!("{directory}.log")).map_err(text)?;
        let server = servers.command("postgres");
        let mut command = Command::new("sh");
        let procs = group.map(|group| self.stage.kernel.groups[group].join("cgroup.procs"));
        command
            .args([
                "-c",
                r#"[ -z "$1" ] || echo $$ >"$1"; shift; exec taskset -c "$@""#,
                "sh",
            ])
            .arg(procs.unwrap_or_default())
            .arg(processor)
            .arg(server.get_program())
            .args(server.get_args())
            .arg("-D")
            .arg(data)
            .args(&settings)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(text)?)
            .stderr(log);
        let mut server = Server {
            postmaster: command.spawn().map_err(text)?,
            data: data.clone(),
            place: place.clone(),
            size: None,
            tables: 0,
        };
        let mut ended = false;
        wait_until("the server is up", || {
            ended = !matches!(server.postmaster.try_wait(), Ok(None));
            let pid = server.postmaster.id().to_string();
            let file = fs::read_to_string(server.data.join("postmaster.pid")).unwrap_or_default();
            let mut lines = file.lines();
            let is_its_own = lines.next() == Some(&pid);
            ended || is_its_own && lines.nth(6).is_some_and(|status| status.trim() == "ready")
        })?;
        let on_kernel = if ended {
            "refused"
        } else {
            server.stand_still()?;
            let maps = kernel::read(format!("/proc/{}/maps", server.postmaster.id()));
            match maps.map_err(text)?.contains("/anon_hugepage") {
                true => "on huge pages",
                false => "on small pages",
            }
        };
        self.count(match on_kernel {
            "refused" => "servers refused",
            "on huge pages" => "servers on huge pages",
            _ => "servers on small pages",
        });
        if on_kernel == "on huge pages" {
            server.size = Some(size);
        }
        self.take(on_kernel, |machine| {
            let place = machine.rules.reserving(&place);
            let known = &mut machine.sizes[size];
            let is_default = false;
            let pool = Some(&mut known.pool).filter(|pool| start.takes_from(pool, is_default));
            match start.run(&place, pool, &mut known.groups) {
                Outcome::OnHugePages(mapping) => {
                    machine.mappings.insert(number, (size, mapping));
                    "on huge pages"
                }
                Outcome::OnSmallPages(_) => "on small pages",
                Outcome::Refused(_) => "refused",
            }
        })?;
        if !ended {
            self.running.insert(number, server);
            return self.count_touched(number);
        }
        Ok(())
    }

    /// A server that dies of its fault limit does so in too many ways: t/005_cgroup.pl.
    fn lift_fault_limits(&mut self, size: usize, place: &Place) -> Done {
        let Some(group) = place.group else {
            return Ok(());
        };
        let kb = self.machines[0].sizes[size].kb;
        let groups = &self.machines[0].sizes[size].groups;
        let is_limited = |&group: &usize| groups.0[group].faults.limit.is_some();
        let limited: Vec<usize> = groups.path(group).filter(is_limited).collect();
        for group in limited {
            self.note(format!("{kb} kB: no fault limit of group {group}"));
            let file = self.stage.kernel.limit_file(group, kb, false);
            let answer = kernel::write(file, self.stage.kernel.no_limit());
            self.take(answer, |machine| {
                let groups = &mut machine.sizes[size].groups;
                groups
                    .set_limit(group, Kind::Fault, None, kb << 10)
                    .map_err(|_| 16)
            })?;
            self.compare()?;
        }
        Ok(())
    }

    /// How many pages a server touches nobody knows before. The kernel's free pages say it; every
    /// other counter has to fit that.
    fn count_touched(&mut self, number: u64) -> Done {
        let Some(server) = self.running.get(&number) else {
            return Ok(());
        };
        let Some(size) = server.size else {
            return Ok(());
        };
        let place = server.place.clone();
        let kb = self.machines[0].sizes[size].kb;
        let free = kernel::number(Kernel::pool_file(kb, "free_hugepages")).map_err(text)?;
        let touched = self.machines[0].sizes[size].pool.free().checked_sub(free);
        let touched = touched.ok_or("a server has given pages back")?;
        self.log
            .push(format!("server {number} has touched {touched} more"));
        self.take((touched, false), |machine| {
            machine.touch(number, touched, &place)
        })
    }

    fn touch_server(&mut self, number: u64) -> Done {
        let rows = 1000 + 1000 * self.random.to(15);
        let Some(servers) = &self.stage.servers else {
            return Ok(());
        };
        let Some(server) = self.running.get_mut(&number) else {
            return Ok(());
        };
        server.tables += 1;
        let table = format!("t{}_{}", number, server.tables);
        self.log.push(format!("server {number} fills {rows} rows"));
        server.go_on()?;
        // not at once: CREATE TABLE AS keeps to a few buffers
        let sql = format!(
            "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (x text); \
             INSERT INTO {table} SELECT repeat('x', 1000) FROM generate_series(1, {rows})"
        );
        let mut psql = servers.command("psql");
        psql.args([
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "postgres",
            "-U",
            "postgres",
        ]);
        let directory = server.data.parent().unwrap_or(&server.data);
        psql.arg("-h")
            .arg(directory)
            .arg("-p")
            .arg(port(&server.data));
        let answer = psql.arg("-c").arg(sql).output().map_err(text)?;
        if !answer.status.success() {
            return Err(String::from_utf8_lossy(&answer.stderr).into_owned());
        }
        self.running[&number].stand_still()?;
        self.count("servers touched");
        self.count_touched(number)
    }

    pub fn stop_server(&mut self, number: u64) -> Done {
        self.note(format!("server {number} stops"));
        if let Some(mut server) = self.running.remove(&number) {
            signal("INT", &[server.postmaster.id()])?;
            server.go_on()?;
            let mut end = || !matches!(server.postmaster.try_wait(), Ok(None));
            wait_until("the server stops", &mut end)?;
        }
        self.count("servers stopped");
        self.machines
            .iter_mut()
            .for_each(|machine| machine.unmap(number));
        Ok(())
    }

    /// The postmaster by SIGKILL, and its children too, or they see it and go.
    fn kill_server(&mut self, number: u64) -> Done {
        let by_hand = self.random.once_in(2);
        let how = if by_hand {
            "and its children are"
        } else {
            "is"
        };
        self.note(format!("server {number} {how} killed"));
        if let Some(mut server) = self.running.remove(&number) {
            let processes = server.processes();
            let killed = if by_hand {
                &processes[..]
            } else {
                &processes[..1]
            };
            signal("KILL", killed)?;
            server.postmaster.wait().map_err(text)?;
            signal("CONT", &processes[1..])?;
            let is_gone = |&pid: &u32| matches!(state(pid), None | Some('Z' | 'X'));
            wait_until("all children go", || processes.iter().all(is_gone))?;
        }
        self.count("servers killed");
        self.machines
            .iter_mut()
            .for_each(|machine| machine.unmap(number));
        Ok(())
    }
}

/// Each data directory has a number at its end.
fn port(data: &Path) -> String {
    let name = data.to_string_lossy();
    let digits: String = name
        .chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .collect();
    format!("5{digits:0>4}")
}
