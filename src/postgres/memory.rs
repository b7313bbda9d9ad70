//! The allocator of this crate, which survives running out of memory.
//!
//! If PostgreSQL cannot allocate memory, it raises 53200. Rust aborts, and then the server ends all
//! sessions. Therefore small objects are allocated from a reserve if there is no memory left, and
//! the next check for interrupts raises 53200. Large objects, which grow with the input, are
//! allocated fallibly everywhere (`try_reserve`).

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, UnsafeCell},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use pgrx::pg_sys;

use crate::error::Error;

/// Far more than is allocated between two checks. Unused, it takes address space but no memory.
const RESERVE: usize = 4 << 20;

/// Maximum size of a small object.
const LARGEST: usize = 1 << 20;

#[repr(align(4096))]
struct Allocator {
    reserve: UnsafeCell<[u8; RESERVE]>,
    /// Bytes of the reserve that are allocated. Reset to 0 when nothing is in use.
    dealt: AtomicUsize,
    in_use: AtomicUsize,
    is_short: AtomicBool,
}

// SAFETY: a backend has one thread, and each byte of the reserve has one owner at a time.
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

// SAFETY: memory of the system is returned to the system. Memory of the reserve has the requested
// size and alignment, and no other owner until it is freed.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfills the requirements of the system allocator, here and below.
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
        // SAFETY: the caller guarantees the size, and the alignment was correct before. Both ranges
        // contain the copied bytes and do not overlap.
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

/// True if an object was allocated from the reserve since the last call and is still in use.
/// Reported only once, because an object could stay in use forever.
pub(crate) fn has_run_out() -> bool {
    ALLOCATOR.is_short.swap(false, Relaxed)
}

/// Called once, while there is memory. Makes the allocations of the first error in advance, because
/// that error can be "out of memory".
///
/// pgrx stores the location of an error in a thread-local, for which the C library allocates
/// memory. It also collects a backtrace, which needs a lot of memory and a lock. The variable that
/// disables backtraces affects only this crate, because it is read only once.
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
    // SAFETY: a context of this backend that is never deleted, with an initial block.
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

/// Makes the C library keep some memory for objects that pgrx allocates from PostgreSQL outside the
/// body of a function: the state of a function that returns rows, and each row. An error there
/// could not be reported without memory.
fn keep_some_ready() {
    // SAFETY: freed at once, and smaller than blocks that the C library returns to the kernel.
    unsafe { pg_sys::pfree(pg_sys::palloc(READY)) };
}

/// Returns an error unless this much memory can be allocated. Called before a function of
/// PostgreSQL that allocates with the size of its input: without memory, it would use up the room
/// for its own error (see [`with_room`]), and the server would crash.
pub(crate) fn require(bytes: usize) -> Result<(), Error> {
    // SAFETY: freed at once. With this flag, the function returns a null pointer instead of raising
    // an error.
    unsafe {
        let probe = pg_sys::palloc_extended(bytes, pg_sys::MCXT_ALLOC_NO_OOM.cast_signed());
        if probe.is_null() {
            return Err(Error::OutOfMemory);
        }
        pg_sys::pfree(probe);
    }
    Ok(())
}

/// More than a row needs, and less than `M_TRIM_THRESHOLD` of the C library.
const READY: usize = 32 << 10;

/// More than PostgreSQL's error report needs.
const FIRST_ROOM: usize = 16 << 10;

thread_local! {
    static ROOM: Cell<pg_sys::MemoryContext> = const { Cell::new(std::ptr::null_mut()) };
}

/// Runs code that calls PostgreSQL in a memory context with room for an error, because pgrx copies
/// the error report into the current context. Without memory for the copy, it would jump to a stack
/// frame that has returned. Memory that PostgreSQL allocates meanwhile is freed afterwards.
pub(crate) fn with_room<T>(body: impl FnOnce() -> T) -> T {
    struct Former(pg_sys::MemoryContext);
    impl Drop for Former {
        fn drop(&mut self) {
            // SAFETY: the context that was current at the start, which the caller keeps.
            unsafe { pg_sys::CurrentMemoryContext = self.0 };
        }
    }
    // SAFETY: the context was created when the library was loaded, and only this function uses it:
    // the functions of this crate do not call each other through SQL.
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
