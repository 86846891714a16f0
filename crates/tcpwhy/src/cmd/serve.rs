use crate::args::Serve;
use crate::failure::{Exit, Usage, say};
use crate::serve::{self, Server};
use crate::{cmd, input};
use anyhow::bail;
use std::net::SocketAddr;

/// Serves until it is interrupted.
pub(crate) fn run(args: &Serve) -> anyhow::Result<Exit> {
    let plain =
        |t: &String| t.len() >= 8 && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if args.token.as_ref().is_some_and(|t| !plain(t)) {
        bail!(Usage("--token: at least eight letters, digits, - or _".into()));
    }
    if let Some(path) = &args.path
        && !path.is_dir()
    {
        // What cannot be read is said before a browser is opened.
        let (inputs, _) = input::in_order(std::slice::from_ref(path));
        for input in &inputs {
            if input.is_stdin() {
                bail!(Usage("serve needs a file or a folder: write standard input to one first".into()));
            }
            input.open().map_err(|why| anyhow::anyhow!(why))?;
        }
    }
    let stop = cmd::end_signal()?;
    let address = SocketAddr::new(args.listen, args.port);
    let limit = args.max_upload.saturating_mul(1 << 20);
    let server = Server::new(args.path.as_deref(), address, args.token.clone(), limit, stop)?;
    if server.count() == 0
        && let Some(path) = &args.path
    {
        say(&format!(
            "{}: no captures in it yet; they appear on the page as they are written",
            path.display()
        ));
    }
    serve::announce(&server);
    server.run()?;
    Ok(Exit::Done)
}
