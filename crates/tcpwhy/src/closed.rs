//! Whether standard output was closed when the program began (`>&-`). Before `main` Rust's runtime opens `/dev/null` in the
//! place of what is closed: what is written then is lost, and no write fails.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Where constructors run before the runtime does: on Linux.
#[cfg(target_os = "linux")]
mod before {
    extern "C" fn look() {
        let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
        super::CLOSED.store(closed, super::Relaxed);
    }

    #[used]
    #[expect(unsafe_code, reason = "what stands in this section is called, and is such a function")]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;
}

/// An answer can go to standard output, as far as is known.
pub(crate) fn is_open() -> io::Result<()> {
    if CLOSED.load(Relaxed) {
        return Err(io::Error::other("it was closed by whoever started this"));
    }
    Ok(())
}
