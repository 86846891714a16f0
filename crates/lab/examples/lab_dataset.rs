//! `lab_dataset DIR [--only TEXT]`: makes the labelled data set of the matrix.

use std::path::PathBuf;
use tcpwhy_lab::{cells, run};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let out =
        PathBuf::from(arguments.next().ok_or_else(|| anyhow::anyhow!("lab_dataset DIR [--only TEXT]"))?);
    let only = arguments.nth(1).unwrap_or_default();
    for cell in cells()?.into_iter().filter(|c| c.name.contains(&only)) {
        let run = run(&cell.scenario)?;
        run.write(&out.join(&cell.name))?;
        println!(
            "{} {:.3} s{}",
            cell.name,
            run.elapsed_ns as f64 / 1e9,
            if run.traffic.disturbed { " disturbed" } else { "" }
        );
    }
    Ok(())
}
