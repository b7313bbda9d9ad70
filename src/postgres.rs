//! What the server knows of itself.

pub(crate) mod child;
pub(crate) mod memory;
pub(crate) mod settings;

use std::{
    collections::{HashMap, HashSet, TryReserveError},
    ffi::{CStr, CString, OsStr},
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::ffi::OsStrExt,
    },
    path::PathBuf,
    time::Duration,
};

use hugeinfo::server::facts::{HugePages, Server, SharedMemoryType, Subject};
use pgrx::{callconv::ArgAbi, datum::Interval, pg_sys, pg_sys::panic::ErrorReport, prelude::*};

use crate::error::Error;

/// The settings that decide over huge pages.
pub(crate) fn server() -> Result<Server, Error> {
    let shared_memory_mb: u64 = setting(c"shared_memory_size")?
        .parse()
        .map_err(|_| Error::Setting("shared_memory_size"))?;
    server_with(setting, shared_memory_mb << 20)
}

/// The same with settings from elsewhere, written as in a configuration file.
pub(crate) fn server_with(
    setting: impl Fn(&'static CStr) -> Result<String, Error>,
    shared_memory_bytes: u64,
) -> Result<Server, Error> {
    let huge_pages = match setting(c"huge_pages")?.to_ascii_lowercase().as_str() {
        "off" | "false" | "no" | "0" => HugePages::Off,
        "on" | "true" | "yes" | "1" => HugePages::On,
        "try" => HugePages::Try,
        _ => return Err(Error::Setting("huge_pages")),
    };
    let shared_memory_type = match setting(c"shared_memory_type")?
        .to_ascii_lowercase()
        .as_str()
    {
        "mmap" => SharedMemoryType::Mmap,
        "sysv" => SharedMemoryType::Sysv,
        _ => return Err(Error::Setting("shared_memory_type")),
    };
    let huge_page_size_kb =
        kilobytes(&setting(c"huge_page_size")?).ok_or(Error::Setting("huge_page_size"))?;
    Ok(Server {
        huge_pages,
        shared_memory_type,
        huge_page_size_bytes: (huge_page_size_kb > 0).then_some(huge_page_size_kb << 10),
        shared_memory_bytes,
    })
}

/// The postmaster and an address inside the main segment.
///
/// The buffer blocks lie in it with `shared_memory_type` `mmap` and `sysv` alike.
/// `UsedShmemSegAddr` would not do: with `mmap` it is the small System V segment that guards the
/// data directory.
pub(crate) fn subject() -> Subject {
    // SAFETY: both are set before a backend runs its first query, and never changed after.
    let (postmaster, address) = unsafe {
        (
            pg_sys::PostmasterPid,
            pg_sys::BufferBlocks.expose_provenance(),
        )
    };
    Subject {
        // 0 in single-user mode.
        postmaster: u32::try_from(postmaster).ok().filter(|&pid| pid > 0),
        address: address as u64,
    }
}

/// A value such as `2MB`, by PostgreSQL's own rules; kilobytes where it has no unit.
fn kilobytes(value: &str) -> Option<u64> {
    let value = CString::new(value).ok()?;
    let mut kilobytes = 0;
    // SAFETY: reads a C string, writes a number, and takes a null pointer for a hint that nobody
    // wants.
    let is_understood = unsafe {
        pg_sys::parse_int(
            value.as_ptr(),
            &raw mut kilobytes,
            pg_sys::GUC_UNIT_KB.cast_signed(),
            std::ptr::null_mut(),
        )
    };
    is_understood.then(|| u64::try_from(kilobytes).ok())?
}

/// A setting in its base unit. PostgreSQL raises an error if there is none of that name.
pub(crate) fn setting(name: &CStr) -> Result<String, Error> {
    // SAFETY: with `missing_ok` false the answer is a C string, valid until the next call, and
    // copied before.
    let value = unsafe { CStr::from_ptr(pg_sys::GetConfigOption(name.as_ptr(), false, false)) };
    Ok(value.to_string_lossy().into_owned())
}

/// The process of which all others of this server are children: the postmaster, or this process
/// alone in single-user mode.
pub(crate) fn parent_pid() -> u32 {
    subject().postmaster.unwrap_or_else(std::process::id)
}

/// Whether the process of [`parent_pid`] lives.
pub(crate) fn has_parent() -> bool {
    let parent = parent_pid();
    parent == std::os::unix::process::parent_id() || parent == std::process::id()
}

/// An address inside the System V segment that guards the data directory.
pub(crate) fn shim_address() -> u64 {
    // SAFETY: set by the postmaster before it forks, and never changed after.
    unsafe { pg_sys::UsedShmemSegAddr.expose_provenance() as u64 }
}

/// The limit on client connections.
pub(crate) fn max_connections() -> u64 {
    // SAFETY: set before the server starts its first process.
    let connections = unsafe { pg_sys::MaxConnections };
    u64::try_from(connections).unwrap_or_default()
}

/// Whether I/O goes through io_uring, whose rings may take locked memory.
pub(crate) fn uses_io_uring() -> bool {
    // PostgreSQL 18 has that setting first.
    let name = c"io_method";
    // SAFETY: with `missing_ok` true a null pointer says that there is none; else a C string,
    // looked at once.
    unsafe {
        let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        !value.is_null() && CStr::from_ptr(value) == c"io_uring"
    }
}

/// The processes that have a slot in shared memory: all but the postmaster, the logger and those
/// that are just starting or ending.
///
/// By who owns the latch of each: PostgreSQL 15 leaves the pid in a slot that is given up, to be
/// found for as long as the slot stays free.
pub(crate) fn pids_in_shared_memory() -> Result<HashSet<u32>, TryReserveError> {
    // SAFETY: set before the server starts its first process, and there for as long as it runs.
    let header = unsafe { &*pg_sys::ProcGlobal };
    let count = usize::try_from(header.allProcCount).unwrap_or_default();
    let mut pids = HashSet::new();
    for index in 0..count {
        // SAFETY: the array is as long as its header says. A pid is read without a lock, as the
        // server itself does: it may be out of date, and whoever uses it checks the process.
        let pid = unsafe {
            (&raw const (*header.allProcs.add(index)).procLatch.owner_pid).read_volatile()
        };
        if let Some(pid) = u32::try_from(pid).ok().filter(|&pid| pid > 0) {
            pids.try_reserve(1)?;
            pids.insert(pid);
        }
    }
    Ok(pids)
}

/// What PostgreSQL calls each of its processes now, by pid, as `pg_stat_activity.backend_type`.
pub(crate) fn backend_types() -> Result<HashMap<u32, String>, TryReserveError> {
    let text = |string: *const std::ffi::c_char| {
        // SAFETY: a constant or a static buffer of PostgreSQL's, copied at once.
        unsafe { CStr::from_ptr(string) }
            .to_string_lossy()
            .into_owned()
    };
    let mut types = HashMap::new();
    // SAFETY: the snapshot of this backend is thrown away and taken anew; entries stay valid until
    // the next such call, which is not made before the loop ends.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        for index in 1..=pg_sys::pgstat_fetch_stat_numbackends() {
            #[cfg(feature = "pg15")]
            let entry = pg_sys::pgstat_fetch_stat_local_beentry(index).as_ref();
            #[cfg(not(feature = "pg15"))]
            let entry = pg_sys::pgstat_get_local_beentry_by_index(index).as_ref();
            let Some(status) = entry.map(|entry| &entry.backendStatus) else {
                continue;
            };
            let Ok(pid) = u32::try_from(status.st_procpid) else {
                continue;
            };
            let own_name = (status.st_backendType == pg_sys::BackendType::B_BG_WORKER)
                .then(|| worker_type(pid))
                .flatten();
            let name =
                own_name.unwrap_or_else(|| text(pg_sys::GetBackendTypeDesc(status.st_backendType)));
            types.try_reserve(1)?;
            types.insert(pid, name);
        }
    }
    Ok(types)
}

/// What a background worker calls itself, by `bgw_type`; `None` for a process that is none.
pub(crate) fn worker_type(pid: u32) -> Option<String> {
    let pid = i32::try_from(pid).ok()?;
    // SAFETY: null, or a static buffer of PostgreSQL's, copied at once.
    unsafe {
        let name = pg_sys::GetBackgroundWorkerTypeByPid(pid);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// Whether text of this database can hold every character.
pub(crate) fn is_utf8_database() -> bool {
    // SAFETY: reads a variable of this backend.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    u32::try_from(encoding) == Ok(pg_sys::pg_enc::PG_UTF8)
}

/// Whether the caller may read files of this server anyway, `/proc/PID/maps` among them, by `COPY`.
pub(crate) fn may_read_server_files() -> bool {
    // SAFETY: looks up what the caches of this backend have.
    unsafe {
        pg_sys::has_privs_of_role(
            pg_sys::GetUserId(),
            pg_sys::Oid::from(pg_sys::ROLE_PG_READ_SERVER_FILES),
        )
    }
}

/// Raises PostgreSQL's error if a cancel or the end of the session is pending, or if memory has run
/// out.
pub(crate) fn check_for_interrupts() {
    if memory::has_run_out() {
        ErrorReport::from(Error::OutOfMemory).report(PgLogLevel::ERROR);
    }
    pgrx::check_for_interrupts!();
}

/// Waits that long; a cancel or the end of the server ends it at once.
pub(crate) fn wait(duration: Duration) {
    let end = std::time::Instant::now() + duration;
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    loop {
        check_for_interrupts();
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return;
        }
        let milliseconds = i64::try_from(left.as_millis())
            .unwrap_or(i64::MAX)
            .saturating_add(1);
        // SAFETY: the latch is this backend's own.
        unsafe {
            pg_sys::WaitLatch(
                pg_sys::MyLatch,
                events.cast_signed(),
                milliseconds,
                pg_sys::PG_WAIT_EXTENSION,
            );
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
}

/// Waits until there is something to read, at most that long; a cancel or the end of the server
/// ends it at once.
pub(crate) fn wait_readable(source: BorrowedFd<'_>, longest: Duration) {
    let events = pg_sys::WL_LATCH_SET
        | pg_sys::WL_SOCKET_READABLE
        | pg_sys::WL_TIMEOUT
        | pg_sys::WL_EXIT_ON_PM_DEATH;
    let milliseconds = i64::try_from(longest.as_millis())
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    check_for_interrupts();
    // SAFETY: the latch is this backend's own, the descriptor is open.
    unsafe {
        pg_sys::WaitLatchOrSocket(
            pg_sys::MyLatch,
            events.cast_signed(),
            source.as_raw_fd(),
            milliseconds,
            pg_sys::PG_WAIT_EXTENSION,
        );
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts();
}

/// The program of this server.
pub(crate) fn program() -> PathBuf {
    // SAFETY: set before the server starts its first process.
    path(unsafe { CStr::from_ptr((&raw const pg_sys::my_exec_path).cast()) })
}

/// The data directory.
pub(crate) fn data_directory() -> PathBuf {
    // SAFETY: set before the server starts its first process.
    path(unsafe { CStr::from_ptr(pg_sys::DataDir) })
}

/// The configuration file.
pub(crate) fn config_file() -> PathBuf {
    // SAFETY: set before the server starts its first process.
    path(unsafe { CStr::from_ptr(pg_sys::ConfigFileName) })
}

fn path(name: &CStr) -> PathBuf {
    OsStr::from_bytes(name.to_bytes()).into()
}

/// Has PostgreSQL check a value as ALTER SYSTEM does: it raises its own error. Nothing is changed.
pub(crate) fn check_setting(name: &CStr, value: &CStr) {
    // SAFETY: with `changeVal` false the value is only looked at.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_POSTMASTER,
            pg_sys::GucSource::PGC_S_FILE,
            pg_sys::GucAction::GUC_ACTION_SET,
            false,
            pg_sys::PGERROR.cast_signed(),
            false,
        );
    }
}

/// Whether the server, or a library that it has loaded, has defined a setting. One of an unknown
/// prefix that somebody has set is not.
pub(crate) fn is_defined(name: &CStr) -> bool {
    let placeholder = pg_sys::GUC_CUSTOM_PLACEHOLDER.cast_signed();
    with_setting(name, |record| record.flags & placeholder == 0).unwrap_or(false)
}

/// Whether a setting comes from the command line, which goes before any configuration file.
pub(crate) fn is_from_command_line(name: &CStr) -> bool {
    with_setting(name, |record| {
        record.source == pg_sys::GucSource::PGC_S_ARGV
    })
    .unwrap_or(false)
}

fn with_setting<T>(name: &CStr, look: impl FnOnce(&pg_sys::config_generic) -> T) -> Option<T> {
    // SAFETY: an array of as many pointers to what is never freed.
    unsafe {
        #[cfg(feature = "pg15")]
        let (count, all) = (pg_sys::GetNumConfigOptions(), pg_sys::get_guc_variables());
        #[cfg(not(feature = "pg15"))]
        let (count, all) = {
            let mut count = 0;
            let all = pg_sys::get_guc_variables(&raw mut count);
            (count, all)
        };
        std::slice::from_raw_parts(all, usize::try_from(count).ok()?)
            .iter()
            .map(|&record| &*record)
            .find(|record| CStr::from_ptr(record.name) == name)
            .map(look)
    }
}

/// Has [`crate::plan::tidy`] called when this backend ends with an error that doesn't unwind: the
/// end of the session or of the server.
pub(crate) fn tidy_at_exit() {
    #[pg_guard]
    extern "C-unwind" fn tidy(_code: i32, _argument: pg_sys::Datum) {
        crate::plan::tidy();
    }
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    // SAFETY: registers a function that stays where it is.
    REGISTERED.call_once(|| unsafe { pg_sys::on_proc_exit(Some(tidy), 0.into()) });
}

/// More bytes than all settings that may be planned have together.
pub(crate) const LONGEST_SETTINGS: usize = 64 << 10;

/// More bytes than the name or the number of any of them has.
const LONGEST_WORD: usize = 1000;

/// More than may be planned.
const MOST_MEMBERS: usize = 100;

/// A `jsonb` that should be an object of strings, numbers and booleans.
pub(crate) enum Jsonb {
    /// Its members.
    Object(Vec<Member>),
    /// Something else.
    Other,
    /// Longer than [`LONGEST_SETTINGS`].
    TooLong,
}

/// A name, and a value as the user wrote it; `None`: it is null, an array or an object.
pub(crate) type Member = (String, Option<CString>);

pgrx::impl_sql_translatable!(Jsonb, "jsonb");

// SAFETY: the argument is declared as `jsonb`.
unsafe impl<'fcx> ArgAbi<'fcx> for Jsonb {
    unsafe fn unbox_arg_unchecked(argument: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: as declared.
        unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self::Other)
    }
}

impl FromDatum for Jsonb {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        use pg_sys::{JsonbIteratorToken as token, jbvType as kind};
        if is_null {
            return None;
        }
        // SAFETY: as declared. The iterator lives in this call's memory context; every string is
        // copied.
        unsafe {
            if pg_sys::toast_raw_datum_size(datum) > LONGEST_SETTINGS {
                return Some(Self::TooLong);
            }
            let jsonb: *mut pg_sys::Jsonb = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
            let mut iterator = pg_sys::JsonbIteratorInit(&raw mut (*jsonb).root);
            let mut value: pg_sys::JsonbValue = std::mem::zeroed();
            let mut next = || {
                let token = pg_sys::JsonbIteratorNext(&raw mut iterator, &raw mut value, true);
                (token, value)
            };
            if next().0 != token::WJB_BEGIN_OBJECT {
                return Some(Self::Other);
            }
            let bytes = |value: &pg_sys::JsonbValue| {
                let string = value.val.string;
                let length = usize::try_from(string.len).unwrap_or_default();
                // An empty string may have no address.
                match length {
                    0 => &[],
                    _ => std::slice::from_raw_parts(string.val.cast::<u8>(), length),
                }
            };
            let mut members = Vec::new();
            while let (token::WJB_KEY, name) = next() {
                // One of more than there are settings is wrong, or there twice, among the first.
                if members.len() > MOST_MEMBERS {
                    break;
                }
                let (_, value) = next();
                let value = match value.type_ {
                    kind::jbvString => CString::new(bytes(&value)).ok(),
                    kind::jbvNumeric => {
                        let digits = pg_sys::numeric_normalize(value.val.numeric);
                        let digits = CStr::from_ptr(digits).to_bytes();
                        // Of more digits than that no setting takes the first ones either.
                        CString::new(&digits[..digits.len().min(LONGEST_WORD)]).ok()
                    }
                    kind::jbvBool if value.val.boolean => Some(c"true".into()),
                    kind::jbvBool => Some(c"false".into()),
                    _ => None,
                };
                // To be shown only, if it is as long as that.
                let name = bytes(&name);
                let name = &name[..name.len().min(LONGEST_WORD)];
                members.push((String::from_utf8_lossy(name).into_owned(), value));
            }
            Some(Self::Object(members))
        }
    }
}

/// A `text`, to be read by PostgreSQL's own rules, in the encoding of the database.
pub(crate) struct Text(pg_sys::Datum);

pgrx::impl_sql_translatable!(Text, "text");

// SAFETY: the argument is declared as `text`. Functions that take it are strict: it is never null.
unsafe impl<'fcx> ArgAbi<'fcx> for Text {
    unsafe fn unbox_arg_unchecked(argument: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: as declared.
        unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self(pg_sys::Datum::null()))
    }
}

impl FromDatum for Text {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        (!is_null).then_some(Self(datum))
    }
}

impl Text {
    /// Its length, known before it is decompressed.
    fn bytes(&self) -> usize {
        // SAFETY: as declared.
        let with_header = unsafe { pg_sys::toast_raw_datum_size(self.0) };
        with_header - pg_sys::VARHDRSZ
    }

    /// As a `jsonb`. PostgreSQL raises its own error where it is none.
    pub(crate) fn jsonb(&self) -> Jsonb {
        if self.bytes() > LONGEST_SETTINGS {
            return Jsonb::TooLong;
        }
        // SAFETY: what the function takes, as pg_proc has it.
        unsafe { pgrx::direct_function_call(pg_sys::jsonb_in, &[self.c_string()]) }
            .unwrap_or(Jsonb::Other)
    }

    /// As an `interval`. PostgreSQL raises its own error where it is none.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let no_element = Some(pg_sys::InvalidOid.into());
        let any_precision = Some((-1).into());
        // SAFETY: what the function takes, as pg_proc has it.
        unsafe {
            let arguments = [self.c_string(), no_element, any_precision];
            pgrx::direct_function_call(pg_sys::interval_in, &arguments)
        }
    }

    /// For an input function.
    fn c_string(&self) -> Option<pg_sys::Datum> {
        // SAFETY: as declared. What it makes lives as long as this call.
        let string = unsafe { pg_sys::text_to_cstring(self.0.cast_mut_ptr()) };
        Some(string.into())
    }
}
