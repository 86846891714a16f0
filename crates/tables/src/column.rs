//! Columns: typed values, and texts as words of a dictionary.

use std::collections::HashMap;

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Nothing,
    Number(i64),
    Fraction(f32),
    Flag(bool),
    Text(&'a str),
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Value<'a> {
        text.map_or(Value::Nothing, Value::Text)
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Value::Nothing, Value::Number)
    }
}

/// The number of a word in [`Words`].
pub type Word = u32;

/// Texts, each once.
#[derive(Clone, Debug, Default)]
pub struct Words {
    list: Vec<Box<str>>,
    places: HashMap<Box<str>, Word>,
    last: Word,
}

impl Words {
    /// The number of this text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> Word {
        // Rows are sorted, so that mostly it is that of the row before.
        if self.list.get(self.last as usize).is_some_and(|last| **last == *text) {
            return self.last;
        }
        if let Some(&place) = self.places.get(text) {
            self.last = place;
            return place;
        }
        let place = self.list.len() as Word;
        self.last = place;
        self.list.push(text.into());
        self.places.insert(text.into(), place);
        place
    }

    /// All, in the order of their numbers.
    pub fn list(&self) -> &[Box<str>] {
        &self.list
    }

    /// The text of this number.
    pub fn get(&self, word: Word) -> &str {
        self.list.get(word as usize).map_or("", |text| text)
    }
}

/// The values of a column that are there; which are is told by [`Column::present`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Values {
    /// Numbers, moments (nanoseconds since the Unix epoch) and durations.
    Numbers(Vec<i64>),
    /// Numbers between 0 and 1.
    Fractions(Vec<f32>),
    /// Yes or no.
    Flags(Vec<bool>),
    /// Words of a dictionary.
    Texts(Vec<Word>, Words),
}

/// A column of some rows.
#[derive(Clone, Debug)]
pub struct Column {
    /// The values that are there.
    pub values: Values,
    /// For each row, whether its value is there; `None`: all are.
    pub present: Option<Vec<bool>>,
}

impl Column {
    pub(crate) fn new(values: Values, nullable: bool) -> Column {
        Column { values, present: nullable.then(Vec::new) }
    }

    /// A value of another kind than that of the column counts as none.
    pub(crate) fn push(&mut self, value: Value<'_>) {
        let there = match (&mut self.values, value) {
            (Values::Numbers(list), Value::Number(n)) => {
                list.push(n);
                true
            }
            (Values::Fractions(list), Value::Fraction(x)) => {
                list.push(x);
                true
            }
            (Values::Flags(list), Value::Flag(flag)) => {
                list.push(flag);
                true
            }
            (Values::Texts(list, words), Value::Text(text)) => {
                list.push(words.number(text));
                true
            }
            _ => false,
        };
        if let Some(present) = &mut self.present {
            present.push(there);
        }
    }
}
