//! Checks the policy: caps, thresholds, weights, limits and deadlines.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::checker::Check;
use super::file::{Deadlines, Limits, PolicyFile, RetryFile};
use super::shape::below;
use super::{ActionsPolicy, Policy};
use crate::domain::{Agent, Thresholds, Usd};

/// The highest cap of a run, in US dollars.
const MAX_USD: f64 = 1_000_000.0;

/// Returns the daily limits that are set, with their names in the file.
fn each_day(limits: &Limits) -> Vec<(&'static str, Usd)> {
    let all = [
        ("dailyUsd", limits.daily_usd),
        ("userDailyUsd", limits.user_daily_usd),
        ("guildDailyUsd", limits.guild_daily_usd),
    ];
    let set = |(name, dollars): (_, Option<f64>)| Some((name, Usd::from_dollars(dollars?)));
    all.into_iter().filter_map(set).collect()
}

impl Check<'_> {
    pub(super) fn policy(&mut self, p: &PolicyFile) -> Option<Policy> {
        let normal_max = self.cap("NORMAL_MAX_USD", p.normal_max_usd.unwrap_or(0.10));
        let deep_max = self.cap("DEEP_MAX_USD", p.deep_max_usd.unwrap_or(0.50));
        let tools_max = p.tools_max_usd.or(p.normal_max_usd).unwrap_or(0.10);
        let tools_max = self.cap("TOOLS_MAX_USD", tools_max);
        let thresholds = Thresholds {
            tau_hard: p.tau_hard.unwrap_or(0.35),
            tau_soft: p.tau_soft.unwrap_or(0.55),
        };
        let Thresholds { tau_hard, tau_soft } = thresholds;
        if tau_hard > tau_soft && self.are_sound(&["/policy/tauHard", "/policy/tauSoft"]) {
            let detail = format!("tauHard {tau_hard} is above tauSoft {tau_soft}");
            self.add("/policy/tauHard", detail);
        }
        if let (Some(normal), Some(deep), Some(tools)) = (normal_max, deep_max, tools_max) {
            self.daily_limits(&p.limits, [normal, deep, tools]);
        }
        let seconds = self.deadlines(&p.deadlines);
        let pauses = Pauses::of(&p.retry);
        self.pauses_fit(pauses, seconds);
        let role_weights = self.role_weights(&p.role_weights);
        let disabled_agents = self.disabled_agents(&p.disabled_agents);
        let actions = self.actions(&p.actions);
        self.proposals_fit(&p.limits, &actions);
        // A value that cannot be used is a problem already. It hides no other.
        Some(Policy {
            normal_max: normal_max.unwrap_or_default(),
            deep_max: deep_max.unwrap_or_default(),
            tools_max: tools_max.unwrap_or_default(),
            ask_user_threshold: p.ask_user_threshold.unwrap_or(0.70),
            thresholds,
            decisions: self.decisions(p),
            llm_confidence_ceiling: p.llm_confidence_ceiling.unwrap_or(0.8),
            max_conflict_penalty: p.max_conflict_penalty.unwrap_or(0.60),
            max_coverage_bonus: p.max_coverage_bonus.unwrap_or(0.10),
            calibration: p.calibration.clone(),
            cross_check: p.cross_check,
            speculate: p.speculate.modes(),
            role_weights,
            disabled_agents,
            limits: p.limits.clone(),
            call_timeout: Duration::from_secs(seconds.call),
            connect_timeout: Duration::from_secs(seconds.connect),
            ask_deadline: Duration::from_secs(seconds.ask),
            audit_deadline: Duration::from_secs(seconds.audit),
            deep_deadline: Duration::from_secs(seconds.deep),
            retry_attempts: pauses.attempts,
            retry_base: Duration::from_millis(pauses.base_ms),
            retry_max: Duration::from_millis(pauses.max_ms),
            breaker_failures: p.breaker.failures.unwrap_or(8),
            breaker_open: Duration::from_secs(p.breaker.open_seconds.unwrap_or(15)),
            clarification_window: Duration::from_secs(60 * p.clarification_minutes.unwrap_or(30)),
            lease: Duration::from_secs(p.lease_seconds.unwrap_or(30)),
            actions,
        })
    }

    /// Checks that the cap of a proposal fits into the daily limits. Otherwise every text that no
    /// rule understands would be refused.
    fn proposals_fit(&mut self, limits: &Limits, actions: &ActionsPolicy) {
        let proposer = &actions.proposer;
        let asks = actions.enabled && proposer.enabled && proposer.provider.is_some();
        let cap = actions.max;
        let too_low = each_day(limits).into_iter();
        for (name, most) in too_low.filter(|(_, most)| asks && cap > *most) {
            let detail = format!(
                "{most} a day never holds the cap of a proposal, {cap}: raise it, or lower actions.maxUsd"
            );
            self.add(format!("/policy/limits/{name}"), detail);
        }
    }

    /// Checks that the cap of each mode fits into the daily limits. Otherwise the mode would always
    /// be refused.
    fn daily_limits(&mut self, limits: &Limits, [normal, deep, tools]: [Usd; 3]) {
        for (name, most) in each_day(limits) {
            let modes = [
                ("ask and audit", normal, "normalMaxUsd"),
                ("deep", deep, "deepMaxUsd"),
                ("tool plans", tools, "toolsMaxUsd"),
            ];
            for (mode, cap, setting) in modes.into_iter().filter(|(_, cap, _)| *cap > most) {
                let detail = format!(
                    "{most} a day never holds the cap of {mode}, {cap}: raise it, or lower {setting}"
                );
                self.add(format!("/policy/limits/{name}"), detail);
            }
        }
        if limits.user_burst.is_some() && limits.user_per_minute.is_none() {
            let place = "/policy/limits/userBurst";
            self.add(place, "says nothing without userPerMinute");
        }
    }

    fn deadlines(&mut self, d: &Deadlines) -> Seconds {
        let seconds = Seconds {
            connect: d.connect.unwrap_or(10),
            call: d.call.unwrap_or(60),
            ask: d.ask.unwrap_or(120),
            audit: d.audit.unwrap_or(180),
            deep: d.deep.unwrap_or(300),
        };
        let Seconds { connect, call, .. } = seconds;
        let [at_connect, at_call] = ["/policy/deadlines/connect", "/policy/deadlines/call"];
        if connect > call && self.are_sound(&[at_connect, at_call]) {
            let detail = format!("{connect} s do not fit into a call's {call} s");
            self.add(at_connect, detail);
        }
        let modes = [
            ("ask", seconds.ask),
            ("audit", seconds.audit),
            ("deep", seconds.deep),
        ];
        let is_short = |(mode, run): &(&str, u64)| {
            call > *run && self.are_sound(&[&below("/policy/deadlines", mode)])
        };
        let too_short = modes.into_iter().filter(is_short);
        let too_short: Vec<String> = too_short
            .map(|(mode, run)| format!("the {run} s of {mode}"))
            .collect();
        if !too_short.is_empty() && self.are_sound(&[at_call]) {
            let runs = too_short.join(", nor into ");
            let detail = format!("{call} s do not fit into a run: not into {runs}");
            self.add(at_call, detail);
        }
        seconds
    }

    /// Checks that the pauses between the attempts at one output fit into the shortest run.
    fn pauses_fit(&mut self, pauses: Pauses, seconds: Seconds) {
        let Pauses {
            attempts,
            base_ms,
            max_ms,
        } = pauses;
        let [at_base, at_max] = ["/policy/retry/baseMs", "/policy/retry/maxMs"];
        if base_ms > max_ms && self.are_sound(&[at_base, at_max]) {
            let detail =
                format!("the first pause, {base_ms} ms, is longer than the longest, {max_ms} ms");
            self.add(at_base, detail);
        }
        let mut together = 0u64;
        for tries in 1..attempts {
            let factor = 1u64.checked_shl(tries - 1).unwrap_or(u64::MAX);
            together = together.saturating_add(base_ms.saturating_mul(factor).min(max_ms));
        }
        let run = seconds.ask.min(seconds.audit).min(seconds.deep);
        let places = [
            at_base,
            at_max,
            "/policy/retry/attempts",
            "/policy/deadlines/ask",
            "/policy/deadlines/audit",
            "/policy/deadlines/deep",
        ];
        if together >= run.saturating_mul(1000) && self.are_sound(&places) {
            let detail = format!("pauses of {together} ms in all do not fit into a run of {run} s");
            self.add(at_max, detail);
        }
    }

    fn cap(&mut self, variable: &str, from_file: f64) -> Option<Usd> {
        let Some(text) = self.env.get(variable) else {
            return Some(Usd::from_dollars(from_file));
        };
        let dollars = text.parse::<f64>().ok();
        let dollars = dollars.filter(|dollars| (0.0..=MAX_USD).contains(dollars));
        if dollars.is_none() {
            let detail = format!(
                "{text:?} is not an amount in US dollars from 0 to 1,000,000, such as 0.10"
            );
            self.add(variable, detail);
        }
        dollars.map(Usd::from_dollars)
    }

    fn role_weights(&mut self, weights: &BTreeMap<String, f64>) -> BTreeMap<Agent, f64> {
        let mut known = BTreeMap::new();
        for (name, weight) in weights {
            let place = below("/policy/roleWeights", name);
            match name.parse::<Agent>() {
                Ok(agent) if weight.is_finite() && *weight >= 0.0 => {
                    known.insert(agent, *weight);
                }
                Ok(_) => self.add(place, "a weight is a number from 0 up"),
                Err(_) => self.add(place, "there is no such agent"),
            }
        }
        known
    }

    fn disabled_agents(&mut self, names: &[Option<String>]) -> BTreeSet<Agent> {
        let mut disabled = BTreeSet::new();
        for (i, name) in names.iter().enumerate() {
            let Some(name) = name else { continue };
            let place = format!("/policy/disabledAgents/{i}");
            match name.parse::<Agent>() {
                Ok(agent) if !agent.is_core() => {
                    disabled.insert(agent);
                }
                Ok(_) => self.add(place, "an agent of the core always runs"),
                Err(_) => self.add(place, format!("there is no agent {name:?}")),
            }
        }
        disabled
    }
}

/// The pauses between the attempts at one output.
#[derive(Clone, Copy)]
struct Pauses {
    attempts: u32,
    base_ms: u64,
    max_ms: u64,
}

impl Pauses {
    fn of(r: &RetryFile) -> Self {
        let max_ms = r.max_ms.unwrap_or(8000);
        Self {
            attempts: r.attempts.unwrap_or(4),
            base_ms: r.base_ms.unwrap_or(500.min(max_ms)),
            max_ms,
        }
    }
}

#[derive(Clone, Copy)]
struct Seconds {
    connect: u64,
    call: u64,
    ask: u64,
    audit: u64,
    deep: u64,
}
