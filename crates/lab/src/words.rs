//! Words in files for values of other crates.

/// `client` or `server`.
pub(crate) mod end {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tcpwhy_base::End;

    #[derive(Serialize, Deserialize)]
    #[serde(remote = "End", rename_all = "lowercase")]
    enum Words {
        Client,
        Server,
    }

    pub(crate) fn serialize<S: Serializer>(end: &End, serializer: S) -> Result<S::Ok, S::Error> {
        Words::serialize(end, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<End, D::Error> {
        Words::deserialize(deserializer)
    }
}
