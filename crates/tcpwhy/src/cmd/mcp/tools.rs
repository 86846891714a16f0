//! What can be asked, as the protocol describes it.

use serde_json::{Value, json};
use tcpwhy_base::CAUSES;

/// The tools.
pub(super) const NAMES: [&str; 6] = ["explain", "exchange", "why_not", "predict", "compare", "causes"];

/// Options of `predict` that take a value: name, what it says.
pub(super) const PREDICT: [(&str, &str); 17] = [
    ("rtt", "Round trip time: 80ms"),
    ("distance", "Instead of it, the length of the cable: 15000km"),
    ("bandwidth", "Rate of the bottleneck: 100mbit"),
    ("queue", "What may wait before it: 64KiB"),
    ("mtu", "Largest IP packet: 1500"),
    ("loss", "Share of packets lost at random: 0.1%"),
    ("request", "Bytes of the request: 16KiB"),
    ("response", "Bytes of the response: 20KiB"),
    ("writes", "The client's writes of one request: 4,2048"),
    ("response-writes", "The server's writes of one response: 4,256"),
    ("server-time", "How long the server works: 100ms"),
    ("requests", "How many requests, one after the other: 5"),
    ("gap", "Pause between them: 1s"),
    ("connection", "new, or idle:30s for one that is kept; with like: which connection of the capture"),
    ("sndbuf", "Send buffer: 64KiB"),
    ("rcvbuf", "Receive buffer: 64KiB"),
    ("nodelay", "Who sets TCP_NODELAY: none, client, server or both"),
];

pub(super) fn is_one(name: &str) -> bool {
    NAMES.contains(&name)
}

/// As `tools/list` gives them.
pub(super) fn list() -> Value {
    let file = || json!({ "type": "string", "description": "A capture (pcap, pcapng, snoop; also gz, zst, lz4) below the root folder" });
    let names = || json!({ "type": "boolean", "description": "Call requests as their first bytes do (POST /orders, Redis GET): shows paths and host names" });
    let which = || json!({ "type": "string", "description": "A number of the table, a port, or 10.0.0.1:40000>10.0.0.2:80" });
    let cause = || {
        let ids: Vec<&str> = CAUSES.iter().map(|c| c.id).collect();
        json!({ "type": "string", "enum": ids })
    };
    let predict: serde_json::Map<String, Value> = PREDICT
        .iter()
        .map(|(name, what)| ((*name).to_owned(), json!({ "type": "string", "description": what })))
        .chain([
            ("tls".to_owned(), json!({ "type": "boolean", "description": "A TLS handshake first" })),
            ("like".to_owned(), json!({ "type": "string", "description": "Instead of path and workload: as in this capture" })),
        ])
        .collect();
    json!([
        tool(
            "explain",
            "Where the time went",
            "Why the requests and transfers in a capture are slow: verdict, causes with the frames that prove them, who can change what, what \
             it saves; tables of requests and connections. With `connection` all about one of them.",
            &json!({
                "file": file(), "connection": which(), "names": names(),
                "top": { "type": "integer", "minimum": 0, "description": "Rows of each table (10; 3 of the slowest requests): the answer's --top" },
                "verbose": { "type": "boolean", "description": "All fixes and notes in full, for each system: the answer's -v" },
            }),
            &["file"]
        ),
        tool(
            "exchange",
            "One request, packet by packet",
            "The time line of one request: each stretch of time with its cause, and the packets.",
            &json!({ "file": file(), "connection": which(), "exchange": { "type": "integer", "minimum": 1 }, "names": names() }),
            &["file", "connection", "exchange"]
        ),
        tool(
            "why_not",
            "What speaks against a cause",
            "What a capture shows for a cause, what is missing for it, and how the cause is recognised.",
            &json!({ "file": file(), "cause": cause() }),
            &["file", "cause"]
        ),
        tool(
            "predict",
            "How long it will take",
            "How long a request will take over a path, where the time goes, and what each change would save; from a model, without a capture.",
            &Value::Object(predict),
            &[]
        ),
        tool(
            "compare",
            "Did the fix work",
            "Two captures, before and after: medians, 95th percentiles and causes, with intervals; what may be chance is marked. The opening \
             of a connection counts with the request that waited for it; requests that servers made while they answered are rows apart.",
            &json!({ "before": file(), "after": file(), "names": names() }),
            &["before", "after"]
        ),
        tool(
            "causes",
            "What a cause means",
            "A cause: what it is, how it is recognised, all ways to fix it. Without `id` the list of all.",
            &json!({ "id": cause() }),
            &[]
        ),
    ])
}

fn tool(name: &str, title: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
        "annotations": {
            "title": title,
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": true,
            "openWorldHint": false,
        },
    })
}
