//! Collects the documentation pages of the causes into a table, so that the program carries them with it.
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};
use tcpwhy_base::CAUSES;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pages = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../docs/causes");
    println!("cargo::rerun-if-changed={}", pages.display());
    let mut table = String::from("&[\n");
    for cause in CAUSES {
        let page = pages.join(cause.id).with_extension("md");
        if page.is_file() {
            println!("cargo::rerun-if-changed={}", page.display());
            writeln!(table, "    ({:?}, include_str!({:?})),", cause.id, page.canonicalize()?)?;
        }
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("pages.rs"), table)?;
    Ok(())
}
