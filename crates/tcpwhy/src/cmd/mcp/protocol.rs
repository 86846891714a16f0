//! JSON-RPC 2.0 as the Model Context Protocol uses it: what is asked, in which generation, and the frame of the reply.

use super::tools;
use serde_json::{Map, Value, json};

/// Revisions that begin with a handshake; the newest is offered to those who ask for another.
const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The one whose requests stand each for itself.
const STATELESS: &str = "2026-07-28";
/// Where such a request says which revision it is of.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// A list of tools stays what it is as long as the program runs.
const FRESH_MS: u64 = 3_600_000;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const UNSUPPORTED_VERSION: i32 = -32022;

const INSTRUCTIONS: &str = "Explains from packet captures why TCP transfers and requests are slow. Begin with `explain` on a capture; \
                            `exchange` shows one request packet by packet; `why_not` says what speaks against a cause; `predict` needs no \
                            capture. Quote the frame numbers as evidence, keep the words for how sure it is, and name no cause that the \
                            answer does not name.";

/// A question that wants a reply.
pub(super) struct Request {
    pub(super) id: Value,
    method: String,
    params: Map<String, Value>,
    stateless: bool,
}

/// What is to be said.
pub(super) enum Reply {
    /// Known at once.
    Told,
    /// What a tool answers.
    Call { name: String, arguments: Map<String, Value> },
}

/// What a tool answered: text; or why it could not.
pub(super) type Said = Result<String, String>;

fn error(id: &Value, code: i32, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

pub(super) fn no_json() -> Value {
    error(&Value::Null, PARSE_ERROR, "no JSON", None)
}

pub(super) fn too_long() -> Value {
    error(&Value::Null, INVALID_REQUEST, "a message of more than 1 MiB", None)
}

/// The id that a notification calls off.
pub(super) fn called_off(line: &[u8]) -> Option<Value> {
    const NAME: &[u8] = b"notifications/cancelled";
    if !line.windows(NAME.len()).any(|w| w == NAME) {
        return None;
    }
    let message: Value = serde_json::from_slice(line).ok()?;
    (message.get("method")?.as_str()? == "notifications/cancelled")
        .then(|| message.get("params")?.get("requestId").cloned())?
}

impl Request {
    /// `None`: a notification, or a reply to something that was never asked. `Err`: the refusal.
    pub(super) fn new(message: Value) -> Result<Option<Request>, Value> {
        let Value::Object(mut message) = message else {
            return Err(error(&Value::Null, INVALID_REQUEST, "a request is an object", None));
        };
        let id = message.remove("id");
        let Some(Value::String(method)) = message.remove("method") else {
            let is_reply = message.contains_key("result") || message.contains_key("error");
            return if is_reply {
                Ok(None)
            } else {
                Err(error(&id.unwrap_or_default(), INVALID_REQUEST, "there is no method", None))
            };
        };
        let Some(id) = id else { return Ok(None) };
        if !(id.is_string() || id.is_number()) {
            return Err(error(&Value::Null, INVALID_REQUEST, "an id is a string or a number", None));
        }
        let params = match message.remove("params") {
            Some(Value::Object(params)) => params,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(error(&id, INVALID_PARAMS, "params is an object", None)),
        };
        let meta = params.get("_meta");
        let version = meta.and_then(|m| m.get(VERSION));
        let stateless = version.is_some() || method == "server/discover";
        if stateless {
            let Some(Value::String(asked)) = version else {
                return Err(error(&id, INVALID_PARAMS, &format!("params._meta lacks {VERSION}"), None));
            };
            if asked != STATELESS {
                let data = json!({ "supported": versions(), "requested": asked });
                return Err(error(&id, UNSUPPORTED_VERSION, "this revision is not spoken", Some(data)));
            }
            if !meta.is_some_and(|m| m.get(CAPABILITIES).is_some_and(Value::is_object)) {
                return Err(error(&id, INVALID_PARAMS, &format!("params._meta lacks {CAPABILITIES}"), None));
            }
        }
        Ok(Some(Request { id, method, params, stateless }))
    }

    pub(super) fn reply(&self) -> Reply {
        let name = self.params.get("name").and_then(Value::as_str);
        match (self.method.as_str(), name) {
            ("tools/call", Some(name)) if tools::is_one(name) => match self.params.get("arguments") {
                Some(Value::Object(arguments)) => {
                    Reply::Call { name: name.into(), arguments: arguments.clone() }
                }
                None | Some(Value::Null) => Reply::Call { name: name.into(), arguments: Map::new() },
                Some(_) => Reply::Told,
            },
            _ => Reply::Told,
        }
    }

    /// The reply where no tool has to be asked.
    pub(super) fn told(&self) -> Value {
        let result = match self.method.as_str() {
            "initialize" if !self.stateless => self.initialized(),
            "server/discover" => json!({
                "supportedVersions": versions(),
                "capabilities": { "tools": {} },
                "instructions": INSTRUCTIONS,
                "ttlMs": FRESH_MS,
                "cacheScope": "public",
            }),
            "ping" => json!({}),
            "tools/list" if self.stateless => {
                json!({ "tools": tools::list(), "ttlMs": FRESH_MS, "cacheScope": "public" })
            }
            "tools/list" => json!({ "tools": tools::list() }),
            "tools/call" => {
                let known = tools::NAMES.join(", ");
                return error(
                    &self.id,
                    INVALID_PARAMS,
                    &format!("name one of the tools {known}, and arguments as an object"),
                    None,
                );
            }
            other => {
                return error(&self.id, METHOD_NOT_FOUND, &format!("there is no method {other:.40}"), None);
            }
        };
        self.wrapped(result)
    }

    /// The reply with what a tool answered.
    pub(super) fn result(&self, said: Said) -> Value {
        let failed = said.is_err();
        let (Ok(text) | Err(text)) = said;
        self.wrapped(json!({ "content": [{ "type": "text", "text": text }], "isError": failed }))
    }

    fn initialized(&self) -> Value {
        let asked = self.params.get("protocolVersion").and_then(Value::as_str);
        let version = HANDSHAKES.into_iter().find(|v| Some(*v) == asked).unwrap_or(HANDSHAKES[3]);
        json!({
            "protocolVersion": version,
            "capabilities": { "tools": {} },
            "serverInfo": server(),
            "instructions": INSTRUCTIONS,
        })
    }

    fn wrapped(&self, mut result: Value) -> Value {
        if self.stateless {
            result["resultType"] = "complete".into();
            result["_meta"] = json!({ SERVER: server() });
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "result": result })
    }
}

fn versions() -> Vec<&'static str> {
    HANDSHAKES.into_iter().chain([STATELESS]).collect()
}

fn server() -> Value {
    json!({ "name": "tcpwhy", "title": "tcpwhy", "version": env!("CARGO_PKG_VERSION") })
}
