//! Memory that will be needed soon is asked for before it is: to wait for it takes longer than most of what
//! is done with it.

/// Bytes of a cache line on x86_64 (Intel 64 and IA-32 Architectures Optimization Reference Manual; AMD has the same).
const LINE: usize = 64;

/// The cache line in which this begins is on its way; nothing waits for it.
#[inline(always)]
pub(crate) fn fetch<T: ?Sized>(place: &T) {
    fetch_at(std::ptr::from_ref(place).cast());
}

/// All cache lines of this are.
#[inline]
pub(crate) fn fetch_whole<T: ?Sized>(place: &T) {
    let first = std::ptr::from_ref(place).cast::<u8>();
    for at in (0..size_of_val(place)).step_by(LINE) {
        fetch_at(first.wrapping_add(at));
    }
}

/// A plain read would do as well, but processors look only some hundred instructions past one that waits for memory.
#[inline(always)]
fn fetch_at(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    #[expect(
        unsafe_code,
        reason = "the instruction reads nothing, and every processor of this architecture has it"
    )]
    // SAFETY: SSE is part of x86_64, and a prefetch may name any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// So much is asked for at once: less than what glibc gives pages of their own (128 KiB, M_MMAP_THRESHOLD of
/// mallopt(3)), or puts free memory in order for, and gives back what is at the end, as soon as it is free
/// (64 KiB, FASTBIN_CONSOLIDATION_THRESHOLD of its malloc.c).
const AT_ONCE: usize = 60 << 10;

/// The allocator has room for many small pieces. (The program has one of its own; this is for who uses the
/// library, as Python does.) Where a thread has memory of its own, that of glibc grows by the page, and asks
/// the kernel each time; a piece that is taken and given back lets it grow by as much.
#[cold]
pub(crate) fn make_room() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(AT_ONCE)));
}
