//! Colours that can be read on black and on white: of the 256 of xterm, those in the middle of the scale of light. A
//! terminal that has fewer, or `NO_COLOR`, leaves the shades of bars, which stand for the same.

use ratatui::style::{Color, Modifier, Style};
use tcpwhy_base::{Cause, Class, Owner};

pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    /// 256 colours.
    Many,
    /// The eight of old consoles: only those that stand out on any background.
    Few,
    /// No colours.
    None,
}

impl Palette {
    /// As the environment says.
    pub(crate) fn of_terminal() -> Palette {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        if set("NO_COLOR") {
            return Palette::None;
        }
        let term = std::env::var("TERM").unwrap_or_default();
        let few = ["linux", "ansi", "dumb", "cons25", "vt100", "vt102", "vt220"];
        if few.contains(&term.as_str()) { Palette::Few } else { Palette::Many }
    }

    fn pick(self, many: u8, few: Option<Color>) -> Style {
        match (self, few) {
            (Palette::Many, _) => Style::new().fg(Color::Indexed(many)),
            (Palette::Few, Some(colour)) => Style::new().fg(colour),
            _ => Style::new(),
        }
    }

    /// Of a cause, by who has to act, as in the text.
    pub(crate) fn of(self, cause: Cause) -> Style {
        match (cause.owner(), cause.class()) {
            (Owner::Tcp, _) => self.bad(),
            (Owner::Application, _) => self.pick(31, None),
            (Owner::Path, Class::Inherent) => self.pick(243, None),
            (Owner::Path, _) => self.pick(166, Some(Color::Red)),
            (Owner::None, _) => self.pick(134, Some(Color::Magenta)),
        }
    }

    /// Of what can be saved, and of what was lost.
    pub(crate) fn bad(self) -> Style {
        self.pick(160, Some(Color::Red))
    }

    /// Of what helps.
    pub(crate) fn good(self) -> Style {
        self.pick(28, None)
    }

    /// Of data in a graph.
    pub(crate) fn data(self) -> Style {
        self.pick(31, None)
    }

    /// Of ACKs in a graph.
    pub(crate) fn acks(self) -> Style {
        self.pick(28, None)
    }
}

/// The shade of a cause in a bar, for those who see no colours.
pub(crate) fn shade(cause: Cause) -> &'static str {
    match (cause.owner(), cause.class()) {
        (Owner::Tcp, _) => "█",
        (Owner::Path, Class::Tcp) | (Owner::None, _) => "▓",
        (Owner::Application, _) => "▒",
        (Owner::Path, _) => "░",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::CAUSES;

    /// Relative luminance by WCAG 2 of a colour of the cube or of the greys of xterm.
    fn light(index: u8) -> f64 {
        let rgb = match index {
            232.. => [8 + 10 * (index - 232); 3],
            16.. => {
                let n = index - 16;
                [n / 36, n / 6 % 6, n % 6].map(|v| if v == 0 { 0 } else { 55 + 40 * v })
            }
            _ => panic!("the first sixteen are the user's own"),
        };
        let [r, g, b] = rgb.map(|v| {
            let v = f64::from(v) / 255.0;
            if v <= 0.03928 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn every_colour_can_be_read_on_black_and_on_white() {
        let p = Palette::Many;
        let mut styles: Vec<Style> =
            CAUSES.iter().filter_map(|c| Cause::from_id(c.id)).map(|c| p.of(c)).collect();
        assert!(styles.len() > 30);
        styles.extend([p.bad(), p.good(), p.data(), p.acks()]);
        for style in styles {
            let Some(Color::Indexed(index)) = style.fg else { panic!("{style:?}") };
            let l = light(index);
            let (black, white) = ((l + 0.05) / 0.05, 1.05 / (l + 0.05));
            assert!(black >= 3.5 && white >= 3.5, "{index}: {black:.1} on black, {white:.1} on white");
        }
        for few in [Palette::Few, Palette::None] {
            assert!(![Some(Color::Blue), Some(Color::Cyan)].contains(&few.of(Cause::PathDelay).fg));
        }
        assert_eq!(Palette::None.bad(), Style::new());
    }
}
