//! Collects the documentation pages of the causes and the scenarios of the lab into tables, so that the program
//! carries them with it.
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
    scenarios()
}

fn scenarios() -> Result<(), Box<dyn std::error::Error>> {
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            files.push(path.canonicalize()?);
        }
    }
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.file_stem().unwrap_or_default();
        writeln!(table, "    ({name:?}, include_str!({path:?})),")?;
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scenarios.rs"), table)?;
    Ok(())
}
