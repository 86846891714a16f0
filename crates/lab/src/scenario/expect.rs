//! What an experiment should show: what was published, what theory says, what this kernel does.

use crate::formula::Formula;
use crate::measure::Measure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The expectation of an experiment. Figures are in the measure's unit: milliseconds, Mbit/s, or a count.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// What is measured, as `SUBJECT STATISTIC`.
    pub measure: Measure,
    /// What was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Stated>,
    /// What the rules of TCP and the link say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theory: Option<Stated>,
    /// What a current Linux kernel does, where that is not the theory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Formula>,
    /// The figure of the other pattern, where a run falls into one of two by microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or: Option<Formula>,
    /// Share by which the figure may differ.
    #[serde(default = "tenth")]
    pub tolerance: f64,
    /// Added to that, in the measure's unit.
    #[serde(default)]
    pub slack: f64,
    /// Why so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the figure is not the published one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<String>,
    /// A run without what `deviation` blames, to check it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Another run, made just before, whose figure the formulas of the expectation may call `against`. For
    /// what depends on the machine: a share of another run on it can be wrong both ways, where a figure would
    /// have to allow anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// How often the experiment is made; the median counts.
    #[serde(default = "once")]
    pub runs: u32,
    /// The figure of the reduced experiment times this is compared with the published one.
    #[serde(default = "same")]
    pub scale: f64,
    /// What the experiment has at the published size, as `"workload.requests" = 1000`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub full: BTreeMap<String, toml::Value>,
}

/// A figure that somebody states.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// The figure, or a formula of the scenario's figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Formula>,
    /// How it was said, or why it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An experiment that checks a reason: what is blamed is taken away, and the figure follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// What is different, as `"client.sysctl.net.ipv4.tcp_syn_linear_timeouts" = 0`.
    pub set: BTreeMap<String, toml::Value>,
    /// The figure that it then has, of the size that is run.
    pub value: Formula,
    /// As of the expectation.
    #[serde(default = "tenth")]
    pub tolerance: f64,
    /// As of the expectation.
    #[serde(default)]
    pub slack: f64,
}

impl Control {
    /// The keys and values.
    pub fn words(&self) -> String {
        words(&self.set)
    }
}

/// The run that a figure is a multiple of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// What is different in it, as `"connects.count" = 500`.
    pub set: BTreeMap<String, toml::Value>,
}

impl Against {
    /// The keys and values.
    pub fn words(&self) -> String {
        words(&self.set)
    }
}

fn words(set: &BTreeMap<String, toml::Value>) -> String {
    set.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// One experiment for each value of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// As for `--set`.
    pub key: String,
    /// Its values.
    pub values: Vec<toml::Value>,
    /// Draw the figures over the values.
    #[serde(default)]
    pub plot: bool,
}

fn tenth() -> f64 {
    0.1
}

fn once() -> u32 {
    1
}

fn same() -> f64 {
    1.0
}
