//! `lab_label DIR...`: writes the labels of kept runs anew.

use std::path::Path;
use tcpwhy_lab::Label;

fn main() -> anyhow::Result<()> {
    for directory in std::env::args().skip(1) {
        let label = Label::read(Path::new(&directory))?;
        label.write(Path::new(&directory))?;
        println!("{directory}: {}", label.truth.verdict);
    }
    Ok(())
}
