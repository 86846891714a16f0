//! Figures as formulas of a scenario: `rtt + think`, `up_bytes / 32768 * rtt`. Numbers, `+ - * /`, brackets, names,
//! and `min`, `max`, `ceil`, `floor`, `log2`. A wrong formula is found when the scenario is read.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// What names stand for.
pub(crate) type Names = BTreeMap<&'static str, f64>;

/// A formula that can be reckoned out, or a plain number.
#[derive(Clone, Debug)]
pub struct Formula {
    text: String,
    tree: Tree,
}

#[derive(Clone, Debug)]
enum Tree {
    Number(f64),
    Name(String),
    Both(char, Box<Tree>, Box<Tree>),
    Call(String, Vec<Tree>),
}

/// How deep brackets may nest, so that no input can exhaust the stack.
const DEPTH: u32 = 50;

impl Formula {
    /// Reads a formula; what is wrong with it is said in a few words.
    pub fn parse(text: &str) -> Result<Formula, String> {
        let mut parser = Parser { rest: text, depth: 0 };
        let tree = parser.sum()?;
        match parser.peek() {
            None => Ok(Formula { text: text.trim().into(), tree }),
            Some(c) => Err(format!("formula {text:?}: {c:?} is not expected here")),
        }
    }

    /// The value, or the name that is not known.
    pub(crate) fn value(&self, names: &Names) -> Result<f64, String> {
        value(&self.tree, names)
    }

    /// It is more than a number.
    pub fn is_formula(&self) -> bool {
        !matches!(self.tree, Tree::Number(_))
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.tree {
            Tree::Number(n) => serializer.serialize_f64(n),
            _ => serializer.serialize_str(&self.text),
        }
    }
}

impl<'de> Deserialize<'de> for Formula {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Formula, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number or a formula in quotes")]
        enum Either {
            Number(f64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(n) => Ok(Formula { text: n.to_string(), tree: Tree::Number(n) }),
            Either::Text(text) => Formula::parse(&text).map_err(serde::de::Error::custom),
        }
    }
}

fn value(tree: &Tree, names: &Names) -> Result<f64, String> {
    Ok(match tree {
        Tree::Number(n) => *n,
        Tree::Name(name) => match names.get(name.as_str()) {
            Some(value) => *value,
            None => {
                let known: Vec<&str> = names.keys().copied().collect();
                return Err(format!("{name} stands for nothing here; known are {}", known.join(", ")));
            }
        },
        Tree::Both(operator, left, right) => {
            let (left, right) = (value(left, names)?, value(right, names)?);
            match operator {
                '+' => left + right,
                '-' => left - right,
                '*' => left * right,
                _ => left / right,
            }
        }
        Tree::Call(name, arguments) => {
            let arguments = arguments.iter().map(|a| value(a, names)).collect::<Result<Vec<_>, _>>()?;
            match (name.as_str(), arguments.as_slice()) {
                ("ceil", [x]) => x.ceil(),
                ("floor", [x]) => x.floor(),
                ("log2", [x]) => x.log2(),
                ("min", [first, rest @ ..]) => rest.iter().fold(*first, |a, &b| a.min(b)),
                ("max", [first, rest @ ..]) => rest.iter().fold(*first, |a, &b| a.max(b)),
                _ => return Err(format!("{name}() of {} values is no function", arguments.len())),
            }
        }
    })
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, any: &[char]) -> Option<char> {
        let found = self.peek().filter(|c| any.contains(c))?;
        self.rest = self.rest.get(found.len_utf8()..).unwrap_or_default();
        Some(found)
    }

    fn while_in(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Result<Tree, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(&['+', '-']) {
            left = Tree::Both(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Tree, String> {
        let mut left = self.single()?;
        while let Some(operator) = self.take(&['*', '/']) {
            left = Tree::Both(operator, Box::new(left), Box::new(self.single()?));
        }
        Ok(left)
    }

    fn single(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("the formula is too long".into());
        }
        let tree = match self.peek() {
            Some('(') => {
                self.take(&['(']);
                let inner = self.sum()?;
                self.close()?;
                inner
            }
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let digits = self.while_in(|c| c.is_ascii_digit() || c == '.');
                Tree::Number(digits.parse().map_err(|_| format!("{digits:?} is no number"))?)
            }
            Some(c) if c.is_ascii_alphabetic() => {
                let name = self.while_in(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
                if self.take(&['(']).is_none() {
                    Tree::Name(name)
                } else {
                    let mut arguments = vec![self.sum()?];
                    while self.take(&[',']).is_some() {
                        arguments.push(self.sum()?);
                    }
                    self.close()?;
                    Tree::Call(name, arguments)
                }
            }
            Some(c) => return Err(format!("{c:?}: a number, a name or a bracket should stand here")),
            None => return Err("the formula ends too early".into()),
        };
        self.depth -= 1;
        Ok(tree)
    }

    fn close(&mut self) -> Result<(), String> {
        self.take(&[')']).map(drop).ok_or_else(|| "a bracket is not closed".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reckon(text: &str) -> Result<f64, String> {
        Formula::parse(text)?.value(&Names::from([("rtt", 20.0), ("think", 5.0)]))
    }

    #[test]
    fn values() {
        assert_eq!(reckon("1 + 2 * 3 - 8 / (1 + 3)"), Ok(5.0));
        assert_eq!(reckon("rtt+think"), Ok(25.0));
        assert_eq!(reckon("max(rtt, 2 * think, 30) + min(1,2) + ceil(1.2) + floor(1.8) + log2(8)"), Ok(37.0));
        assert_eq!(reckon(".5"), Ok(0.5));
    }

    #[test]
    fn wrong_ones() {
        for text in ["", "1 +", "(1", "1 2", "rt", "ceil(1,2)", "f(1)", "é", "1..2", &"(".repeat(100_000)] {
            assert!(reckon(text).is_err(), "{text:.20}");
        }
    }
}
