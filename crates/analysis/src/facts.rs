//! The figures behind a span, kept as numbers; the sentence is made only when somebody reads it.
use tcpwhy_base::Nanos;

/// What is known about why a span has its cause.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Facts {
    /// Nothing beyond the cause.
    #[default]
    None,
    /// A wait of this length.
    Wait(Nanos),
}

impl Facts {
    /// One sentence with the figures.
    pub fn sentence(&self) -> String {
        match self {
            Facts::None => "nothing else is known".into(),
            Facts::Wait(d) => format!("waited {d}"),
        }
    }
}
