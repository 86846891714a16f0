use crate::args::Serve;
use crate::failure::{Exit, Usage, say};
use crate::input::{Input, denied_folder};
use crate::serve::{Server, Token};
use crate::{cmd, shown};
use anyhow::{Context as _, bail};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_library::captures::taps::among;

/// Where a token may stand that nobody else is to see.
const VARIABLE: &str = "TCPWHY_TOKEN";

/// Serves until it is interrupted.
pub(crate) fn run(args: &Serve) -> anyhow::Result<Exit> {
    let token = token(args)?;
    // What cannot be read is said before a browser is opened.
    for path in &args.paths {
        if path.is_dir() {
            denied_folder(path).map_or(Ok(()), |why| Err(anyhow::anyhow!(why)))?;
            continue;
        }
        let input = Input::new(path);
        if input.is_stream() {
            let name = &input.name;
            bail!(Usage(format!("serve needs a file or a folder: write {name} to one first")));
        }
        input.open().map_err(|why| anyhow::anyhow!(why))?;
    }
    let stop = cmd::end_signal()?;
    if let [first, second] = &args.paths[..] {
        belong_together([first, second], &stop)?;
    }
    let address = SocketAddr::new(args.listen, args.port);
    let limit = args.max_upload.saturating_mul(1 << 20);
    let server = Server::new(&args.paths, address, token, (limit, args.names), stop)?;
    if server.count() == 0
        && let Some(path) = args.paths.first()
    {
        say(&format!(
            "{}: no captures in it yet; they appear on the page as they are written",
            path.display()
        ));
    }
    server.announce();
    if args.no_token {
        say("no token is asked for: every user and program of this machine can read these captures");
    }
    if !args.listen.is_loopback() {
        say(&format!(
            "HTTP is not encrypted: who can read the network in between sees the token and the captures. Safer: listen on \
             loopback and come through ssh -L {0}:127.0.0.1:{0}",
            server.port()
        ));
    }
    server.run()?;
    Ok(Exit::Done)
}

/// Two captures that are opened as one have to hold the same connections.
fn belong_together(paths: [&Path; 2], stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let [first, second] = paths.map(|p| shown::argument(p.as_os_str()));
    if paths.iter().any(|p| p.is_dir()) {
        bail!(Usage(format!(
            "{first} and {second}: serve takes one folder, or two captures of the same connections, one from each end"
        )));
    }
    let mut inputs = paths.map(Input::new);
    match among(&mut inputs, None, stop) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => bail!(Usage(format!(
            "{first} and {second} hold no connection that was captured at two ends: put both into a folder and serve that, or one alone"
        ))),
        Err(_) => bail!(Usage(format!(
            "{first} and {second} hold the same connections, but no clock fits both: packets would have arrived before they left. Was a \
             clock set meanwhile? Serve one alone"
        ))),
    }
}

/// The token that was chosen, a made one, or none.
fn token(args: &Serve) -> anyhow::Result<Option<Token>> {
    if args.no_token {
        if !args.listen.is_loopback() {
            bail!(Usage(
                "--no-token: beyond loopback everybody could read the captures; leave one of the two out"
                    .into()
            ));
        }
        return Ok(None);
    }
    let (chosen, place) = if let Some(token) = &args.token {
        (token.clone(), "--token")
    } else if let Some(path) = &args.token_file {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        (text.lines().next().unwrap_or_default().trim().to_owned(), "--token-file")
    } else if let Ok(token) = std::env::var(VARIABLE) {
        (token, VARIABLE)
    } else {
        return Ok(Some(Token::made()));
    };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if chosen.len() < 8 || !chosen.bytes().all(is_plain) {
        bail!(Usage(format!("{place}: at least eight letters, digits, - or _")));
    }
    Ok(Some(Token::Chosen(chosen)))
}
