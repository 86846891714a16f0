//! A run as files.

use crate::label::Label;
use crate::new_file;
use crate::run::Run;
use std::io::{self, BufWriter, Write};
use std::path::Path;

impl Run {
    /// Writes `cap.client.pcap`, `cap.server.pcap`, `meta.json` and `label.json` into a directory, made if need be.
    /// The label of real programs only excludes causes: nobody wrote down what they called.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        self.traffic.write_captures(directory)?;
        let mut meta = BufWriter::new(new_file(&directory.join("meta.json"))?);
        serde_json::to_writer(&mut meta, self)?;
        meta.write_all(b"\n")?;
        meta.flush()?;
        Label::of(self).map_err(io::Error::other)?.write(directory)
    }
}
