//! Memory for this crate's own objects, and what happens when there is no more.
//!
//! If PostgreSQL gets no memory, it raises 53200. Rust aborts, and the server ends all sessions. So
//! small objects come from a reserve when there is no memory left, and the next check for
//! interrupts raises 53200. Large objects, which grow with what is read, are allocated fallibly
//! everywhere (`try_reserve`).

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, UnsafeCell},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use pgrx::pg_sys;

/// Far more than is allocated between two checks. It costs address space, and memory only when it
/// is used.
const RESERVE: usize = 4 << 20;

/// The largest object that counts as small.
const LARGEST: usize = 1 << 20;

#[repr(align(4096))]
struct Allocator {
    reserve: UnsafeCell<[u8; RESERVE]>,
    /// How much of it has been given out. Back to 0 when nothing is in use.
    dealt: AtomicUsize,
    in_use: AtomicUsize,
    is_short: AtomicBool,
}

// SAFETY: a backend has one thread, and each byte of the reserve one owner at a time.
unsafe impl Sync for Allocator {}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator {
    reserve: UnsafeCell::new([0; RESERVE]),
    dealt: AtomicUsize::new(0),
    in_use: AtomicUsize::new(0),
    is_short: AtomicBool::new(false),
};

impl Allocator {
    fn take_from_reserve(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST || layout.align() > 4096 {
            return std::ptr::null_mut();
        }
        self.is_short.store(true, Relaxed);
        let room = layout.size() + layout.align();
        let deal = |dealt: usize| Some(dealt + room).filter(|&dealt| dealt <= RESERVE);
        let Ok(before) = self.dealt.fetch_update(Relaxed, Relaxed, deal) else {
            return std::ptr::null_mut();
        };
        self.in_use.fetch_add(1, Relaxed);
        let start = self.reserve.get().cast::<u8>().wrapping_add(before);
        start.wrapping_add(start.align_offset(layout.align()))
    }

    fn is_of_reserve(&self, pointer: *mut u8) -> bool {
        let start = self.reserve.get().addr();
        (start..start + RESERVE).contains(&pointer.addr())
    }

    fn give_back(&self) {
        if self.in_use.fetch_sub(1, Relaxed) == 1 {
            self.dealt.store(0, Relaxed);
            self.is_short.store(false, Relaxed);
        }
    }
}

// SAFETY: what the system gives goes back to the system. What the reserve gives is as large and as
// aligned as asked for, and nobody else's until it is given back.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system asks for, here and below.
        let pointer = unsafe { System.alloc(layout) };
        if pointer.is_null() {
            return self.take_from_reserve(layout);
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if self.is_of_reserve(pointer) {
            self.give_back();
        } else {
            // SAFETY: as above.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.is_of_reserve(pointer) {
            // SAFETY: as above.
            let moved = unsafe { System.realloc(pointer, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the size is the caller's, the alignment was right before. Both places hold what
        // is copied, and they are apart.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

/// Whether an object came from the reserve since the last call and is still in use. Reported only
/// once: an object that stays in use forever must not be reported forever.
pub(crate) fn has_run_out() -> bool {
    ALLOCATOR.is_short.swap(false, Relaxed)
}

/// Called once, while there is memory. It makes what the first error would otherwise make, which
/// may be the error that memory has run out.
///
/// pgrx keeps the place of an error in a thread-local, for which the C library allocates memory. It
/// also looks for a backtrace, which takes a lot of memory and a lock. The variable that forbids
/// backtraces affects this crate alone: it is read only once.
pub(crate) fn prepare() {
    const BACKTRACE: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(BACKTRACE);
    // SAFETY: a backend has one thread.
    unsafe { std::env::set_var(BACKTRACE, "0") };
    let _ = std::panic::catch_unwind(|| std::panic::panic_any(()));
    // SAFETY: as above.
    unsafe {
        match before {
            Some(value) => std::env::set_var(BACKTRACE, value),
            None => std::env::remove_var(BACKTRACE),
        }
    }
    // SAFETY: a context of this backend, for as long as it lives, with room of its own from the
    // start.
    unsafe {
        ROOM.with(|room| {
            room.set(pg_sys::AllocSetContextCreateInternal(
                pg_sys::TopMemoryContext,
                c"pg_hugeinfo".as_ptr(),
                FIRST_ROOM,
                FIRST_ROOM,
                8 * FIRST_ROOM,
            ));
        });
    }
    keep_some_ready();
}

/// Makes the C library keep some memory ready for what pgrx allocates from PostgreSQL outside the
/// body of a function: the state of a function that returns rows, and each row. An error has no
/// memory there.
fn keep_some_ready() {
    // SAFETY: given back at once; less than what the C library would return to the kernel.
    unsafe { pg_sys::pfree(pg_sys::palloc(READY)) };
}

/// More than a row takes, and less than `M_TRIM_THRESHOLD` of the C library.
const READY: usize = 32 << 10;

/// More than PostgreSQL's report of an error takes.
const FIRST_ROOM: usize = 16 << 10;

thread_local! {
    static ROOM: Cell<pg_sys::MemoryContext> = const { Cell::new(std::ptr::null_mut()) };
}

/// Runs code that calls PostgreSQL in a memory context with room for an error: pgrx copies the
/// report of an error into the current context. Without memory for that, it would jump to a place
/// that it has left. What PostgreSQL allocates meanwhile is freed afterwards.
pub(crate) fn with_room<T>(body: impl FnOnce() -> T) -> T {
    struct Former(pg_sys::MemoryContext);
    impl Drop for Former {
        fn drop(&mut self) {
            // SAFETY: the context that was current when this began, which its caller keeps.
            unsafe { pg_sys::CurrentMemoryContext = self.0 };
        }
    }
    // SAFETY: the context has been made when the library was loaded, and only this uses it: the
    // functions of this crate do not call each other through SQL.
    let _former = unsafe {
        let room = ROOM.get();
        pg_sys::MemoryContextReset(room);
        let former = Former(pg_sys::CurrentMemoryContext);
        pg_sys::CurrentMemoryContext = room;
        former
    };
    let answer = body();
    keep_some_ready();
    answer
}
