//! A message as it is written in a scenario: numbers are writes in bytes, tables are pauses.

use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use tcpwhy_base::{Nanos, Step};

/// Longest pause: a day, in milliseconds.
const MOST_MS: f64 = 86_400_000.0;
/// Largest write.
const MOST_BYTES: u64 = 10_000_000_000;

pub(super) fn serialize<S: Serializer>(steps: &[Step], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().map(|&step| Written(step)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Step>, D::Error> {
    deserializer.deserialize_seq(All)
}

/// One step, as it is written.
struct Written(Step);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    pause_ms: f64,
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Step::Write(bytes) => serializer.serialize_u64(bytes),
            Step::Pause(length) => Pause { pause_ms: length.as_ms() }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written, D::Error> {
        deserializer.deserialize_any(One)
    }
}

struct All;

impl<'de> Visitor<'de> for All {
    type Value = Vec<Step>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of writes in bytes and of pauses, such as [200, { pause_ms = 41 }, 800]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Step>, A::Error> {
        let mut steps = Vec::new();
        while let Some(Written(step)) = seq.next_element()? {
            steps.push(step);
        }
        Ok(steps)
    }
}

struct One;

impl<'de> Visitor<'de> for One {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a write in whole bytes, or a pause such as { pause_ms = 41 }")
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Written, E> {
        u64::try_from(n)
            .map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
            .and_then(|n| self.visit_u64(n))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Written, E> {
        match n {
            1..=MOST_BYTES => Ok(Written(Step::Write(n))),
            _ => Err(E::custom(format!("a write of {n} bytes: 1 to {MOST_BYTES} are possible"))),
        }
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Written, E> {
        let ms = n * 1000.0;
        Err(E::custom(if n > 0.0 && n <= 3600.0 {
            format!(
                "a write of {n} bytes; a pause of {n} s is written {{ pause_ms = {} }}",
                (ms * 1e6).round() / 1e6
            )
        } else {
            format!("a write of {n} bytes: whole bytes, or a pause such as {{ pause_ms = 41 }}")
        }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
        let Pause { pause_ms } = Pause::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        if !(0.0..=MOST_MS).contains(&pause_ms) {
            return Err(A::Error::custom(format!("pause_ms = {pause_ms}: 0 to a day")));
        }
        Ok(Written(Step::Pause(Nanos((pause_ms * 1e6).round() as i64))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Message {
        #[serde(with = "super")]
        steps: Vec<Step>,
    }

    fn read(text: &str) -> Result<Vec<Step>, String> {
        toml::from_str::<Message>(&format!("steps = {text}"))
            .map(|m| m.steps)
            .map_err(|e| e.message().to_owned())
    }

    #[test]
    fn writes_and_pauses_and_back() {
        let steps = read("[200, { pause_ms = 1500 }, 800, { pause_ms = 0.25 }, 1]").unwrap();
        let pause = |us| Step::Pause(Nanos::micros(us));
        assert_eq!(steps, [Step::Write(200), pause(1_500_000), Step::Write(800), pause(250), Step::Write(1)]);
        let text = toml::to_string(&Message { steps: steps.clone() }).unwrap();
        assert_eq!(toml::from_str::<Message>(&text).unwrap().steps, steps, "{text}");
    }

    #[test]
    fn a_number_with_a_point_is_no_write() {
        assert!(
            read("[200, 0.041, 800]")
                .unwrap_err()
                .contains("a pause of 0.041 s is written { pause_ms = 41 }")
        );
        // Once a write of one byte, without a word.
        assert!(read("[1.5]").unwrap_err().contains("{ pause_ms = 1500 }"));
        for wrong in
            ["[0]", "[-1]", "[nan]", "[1e10]", "['1']", "[{ pause = 1 }]", "[{ pause_ms = -1 }]", "5"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
